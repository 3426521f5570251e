"""The cluster that a driver is given (spec/magnum.md 8.4 lists what drivers use)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from sqlalchemy.orm import Session

from trimaran.db.models import magnum as models
from trimaran.db.queries import magnum as queries
from trimaran.errors import NotFound
from trimaran.magnum.context import RequestContext
from trimaran.magnum.objects import base
from trimaran.magnum.objects.cluster_template import ClusterTemplate
from trimaran.magnum.objects.nodegroup import NodeGroup


class Cluster(base.MagnumObject):
    """A cluster; sizes, addresses and the template are read when asked for."""

    NAME: ClassVar[str] = "Cluster"
    VERSION: ClassVar[str] = "1.24"
    MODEL = models.Cluster
    EXTRA: ClassVar[frozenset[str]] = frozenset({"cluster_template"})
    STRINGS: ClassVar[frozenset[str]] = frozenset({"labels", "health_status_reason"})

    @property
    def cluster_template(self) -> ClusterTemplate:
        """The template that ``cluster_template_id`` names now."""
        kept: ClusterTemplate | None = self.__dict__.get("_template")
        if kept is None or kept.uuid != self.cluster_template_id:
            kept = ClusterTemplate.get_by_uuid(self._reader(), self.cluster_template_id)
            self.__dict__["_template"] = kept
        return kept

    @cluster_template.setter
    def cluster_template(self, template: ClusterTemplate) -> None:
        self.__dict__["_template"] = template

    def _reader(self) -> RequestContext:
        if self._context is None:
            raise RuntimeError("this Cluster has no database: give it a context")
        return self._context.elevated()

    @property
    def nodegroups(self) -> list[NodeGroup]:
        """All node groups, as they are in the database now."""
        return NodeGroup.list(self._reader(), self.uuid)

    @property
    def default_ng_worker(self) -> NodeGroup:
        """The default node group that is not the masters'."""
        groups = NodeGroup.list(self._reader(), self.uuid, filters={"is_default": True})
        return next(group for group in groups if group.role != "master")

    @property
    def default_ng_master(self) -> NodeGroup:
        """The default node group of the masters."""
        wanted = {"role": "master", "is_default": True}
        return NodeGroup.list(self._reader(), self.uuid, filters=wanted)[0]

    def _totals(self) -> queries.NodeTotals:
        found = self.db.read(lambda s: queries.node_totals(s, [self.uuid]))
        return found[self.uuid]

    @property
    def node_count(self) -> int:
        """Nodes that are no masters."""
        return self._totals().node_count

    @property
    def master_count(self) -> int:
        """Masters."""
        return self._totals().master_count

    @property
    def node_addresses(self) -> list[str]:
        """Addresses of the nodes that are no masters."""
        return self._totals().node_addresses

    @property
    def master_addresses(self) -> list[str]:
        """Addresses of the masters."""
        return self._totals().master_addresses

    @classmethod
    def get_by_uuid(cls, context: RequestContext, uuid: str) -> Cluster:
        """Returns the cluster with this UUID.

        Raises:
            NotFound: the context sees none.
        """
        ours = base.scope(context)
        row = base.database(context).read(lambda s: queries.get_cluster(s, ours, uuid))
        return cls.from_row(row, context)

    #: a name works as well as a UUID
    get = get_by_uuid
    get_by_name = get_by_uuid

    @classmethod
    def list(
        cls,
        context: RequestContext,
        limit: int | None = None,
        marker: Any = None,
        sort_key: str | None = None,
        sort_dir: str | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> list[Cluster]:
        """Returns the clusters that the context sees."""
        ours, part = base.scope(context), base.page(limit, marker, sort_key, sort_dir)
        rows = base.database(context).read(lambda s: queries.list_clusters(s, ours, part, filters))
        return [cls.from_row(row, context) for row in rows]

    def create(self, context: RequestContext | None = None) -> None:
        """Inserts the cluster.

        Raises:
            Conflict: the UUID is taken.
        """
        values = self.obj_get_changes()
        self._load(self.db.write(lambda s: queries.insert_cluster(s, values)))

    def save(self, context: RequestContext | None = None) -> None:
        """Writes the fields that changed, and no others.

        Raises:
            NotFound: the cluster is gone.
        """
        changes = self.pending()
        if changes and not self.db.write(lambda s: self._write(s, changes)):
            raise NotFound(f"Cluster {self.uuid} could not be found.", code="ClusterNotFound")
        self.obj_reset_changes()

    def _write(self, session: Session, changes: Mapping[str, Any]) -> bool:
        status = str(changes.get("status") or "")
        settled = self._context.settled if self._context is not None else None
        ends = settled is not None and status.endswith(("_COMPLETE", "_FAILED"))
        before = queries.find_cluster(session, self.uuid, lock=True) if ends else None
        news = before is not None and before.status != status
        if not queries.update_cluster(session, self.uuid, changes):
            return False
        if news and settled is not None:
            settled(session, self.uuid, status)
        return True

    def refresh(self, context: RequestContext | None = None) -> None:
        """Reads all fields again; what was changed and not saved is lost.

        Raises:
            NotFound: the cluster is gone.
        """
        row = self.db.read(lambda s: queries.find_cluster(s, self.uuid))
        if row is None:
            raise NotFound(f"Cluster {self.uuid} could not be found.", code="ClusterNotFound")
        self.__dict__.pop("_template", None)
        self._load(row)

    def destroy(self, context: RequestContext | None = None) -> None:
        """Removes the row; node groups are removed with it."""
        self.db.write(lambda s: queries.destroy_cluster(s, self.uuid))

    def as_dict(self) -> dict[str, Any]:
        """Returns the fields, with sizes and addresses where a database is at hand."""
        values = super().as_dict()
        if self._context is not None and self._context.db is not None:
            values.update(vars(self._totals()))
        return values
