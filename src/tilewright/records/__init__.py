"""Records of measurements: what was tried for a workload, how long it took, and what to use of it.

A `Record` is one trial, a `Database` is a file of them, and `Records` is the source of schedules
that gives kernels their best ones. Whoever measures writes; `tw.compile` reads. Nothing here
searches or measures.
"""

from tilewright.records.database import Database
from tilewright.records.kinds import conversion_record, model_record, site_record
from tilewright.records.record import Record, RecordError, target_key, workload_key
from tilewright.records.source import Records

__all__ = ["Database", "Record", "RecordError", "Records", "conversion_record", "model_record"]
__all__ += ["site_record", "target_key", "workload_key"]
