"""The node group that a driver is given."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any, ClassVar

from trimaran.db.models import magnum as models
from trimaran.db.queries import magnum as queries
from trimaran.errors import NotFound
from trimaran.magnum.context import RequestContext
from trimaran.magnum.objects import base


class NodeGroup(base.MagnumObject):
    """Nodes of one kind; ``cluster_id`` is the cluster's UUID."""

    NAME: ClassVar[str] = "NodeGroup"
    VERSION: ClassVar[str] = "1.2"
    MODEL = models.NodeGroup
    STRINGS: ClassVar[frozenset[str]] = frozenset({"labels", "node_labels"})

    @classmethod
    def get(cls, context: RequestContext, cluster: str, ident: str | int) -> NodeGroup:
        """Returns a node group of a cluster by UUID, name or integer id.

        Raises:
            NotFound: the cluster has no such node group.
        """
        row = base.database(context).read(lambda s: queries.get_nodegroup(s, cluster, str(ident)))
        return cls.from_row(row, context)

    get_by_uuid = get
    get_by_name = get

    @classmethod
    def list(
        cls,
        context: RequestContext,
        cluster_id: str,
        limit: int | None = None,
        marker: Any = None,
        sort_key: str | None = None,
        sort_dir: str | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> builtins.list[NodeGroup]:
        """Returns node groups of a cluster, oldest first, all of them without a limit."""
        db = base.database(context)
        if limit is None and marker is None and sort_key is None:
            rows = db.read(lambda s: queries.nodegroups_of(s, cluster_id, filters))
        else:
            part = base.page(limit, marker, sort_key, sort_dir)
            role = (filters or {}).get("role")
            rows = db.read(lambda s: queries.list_nodegroups(s, cluster_id, part, role))
        return [cls.from_row(row, context) for row in rows]

    def create(self, context: RequestContext | None = None) -> None:
        """Inserts the node group.

        Raises:
            Conflict: the cluster has one of that name.
        """
        values = self.obj_get_changes()
        self._load(self.db.write(lambda s: queries.insert_nodegroup(s, values)))

    def save(self, context: RequestContext | None = None) -> None:
        """Writes the fields that changed, and no others.

        Raises:
            NotFound: the node group is gone.
        """
        changes = self.pending()
        if changes and not self.db.write(lambda s: queries.update_nodegroup(s, self.uuid, changes)):
            raise self._gone()
        self.obj_reset_changes()

    def refresh(self, context: RequestContext | None = None) -> None:
        """Reads all fields again.

        Raises:
            NotFound: the node group is gone.
        """
        row = self.db.read(lambda s: queries.find_nodegroup(s, self.uuid))
        if row is None:
            raise self._gone()
        self._load(row)

    def destroy(self, context: RequestContext | None = None) -> None:
        """Removes the row; removing it twice is no error."""
        self.db.write(lambda s: queries.destroy_nodegroup(s, self.uuid))

    def _gone(self) -> NotFound:
        return NotFound(f"Nodegroup {self.uuid} could not be found.", code="NodeGroupNotFound")
