"""Which worker of xdist runs which files: a file's tests in one worker, and those with Spark in as few as possible.

A session costs ten seconds to start and to warm up, in every worker that has one.
"""

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]

SPARK = "tests/pipeline/"


class SparkInOneWorker(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """One worker begins with Spark and stays with it; the others take it up when nothing else is left."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        taken = {worker: any(file.startswith(SPARK) for file in files) for worker, files in self.assigned_work.items()}
        wants_spark = taken[node] or not any(taken.values())
        wanted = (file for file in self.workqueue if file.startswith(SPARK) == wants_spark)
        first = next(wanted, None)
        if first is not None:
            self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)
