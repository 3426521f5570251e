"""The template of a cluster, as a driver reads it."""

from __future__ import annotations

from typing import ClassVar

from trimaran.db.models import magnum as models
from trimaran.db.queries import magnum as queries
from trimaran.errors import NotFound
from trimaran.magnum.context import RequestContext
from trimaran.magnum.objects import base


class ClusterTemplate(base.MagnumObject):
    """A template; drivers only read it."""

    NAME: ClassVar[str] = "ClusterTemplate"
    VERSION: ClassVar[str] = "1.21"
    MODEL = models.ClusterTemplate
    STRINGS: ClassVar[frozenset[str]] = frozenset({"labels"})

    @classmethod
    def get_by_uuid(cls, context: RequestContext, uuid: str) -> ClusterTemplate:
        """Returns the template with this UUID (or name) that the context sees.

        Raises:
            NotFound: none.
        """
        ours = base.scope(context)
        row = base.database(context).read(lambda s: queries.get_template(s, ours, uuid))
        return cls.from_row(row, context)

    get = get_by_uuid
    get_by_name = get_by_uuid

    @classmethod
    def list(
        cls,
        context: RequestContext,
        limit: int | None = None,
        marker: str | None = None,
        sort_key: str | None = None,
        sort_dir: str | None = None,
    ) -> list[ClusterTemplate]:
        """Returns the templates that the context sees."""
        ours, part = base.scope(context), base.page(limit, marker, sort_key, sort_dir)
        rows = base.database(context).read(lambda s: queries.list_templates(s, ours, part))
        return [cls.from_row(row, context) for row in rows]

    def save(self, context: RequestContext | None = None) -> None:
        """Writes the fields that changed.

        Raises:
            NotFound: it is gone.
            BadRequest: clusters use it and the change is not allowed then.
        """
        changes = self.pending()
        if changes:
            self.db.write(lambda s: queries.update_template(s, self.uuid, changes))
        self.obj_reset_changes()

    def refresh(self, context: RequestContext | None = None) -> None:
        """Reads all fields again.

        Raises:
            NotFound: it is gone.
        """
        row = self.db.read(lambda s: queries.find_template(s, self.uuid))
        if row is None:
            raise NotFound(
                f"ClusterTemplate {self.uuid} could not be found.", code="ClusterTemplateNotFound"
            )
        self._load(row)
