"""The tables of a database of records, and everything that is asked of them, as SQL."""

from __future__ import annotations

from typing import Final

__all__ = ["ADD", "ALL", "BEST", "COUNT", "DROP_BEYOND", "DROP_OLDER", "OF_WORKLOAD", "REMOVE"]
__all__ += ["DROP_VERDICTS", "OF_KIND", "TABLES", "TASKS", "WINNERS", "WITHDRAWN"]

TABLES: Final = """
create table records (
    number integer primary key,
    checksum text not null unique,
    workload text not null,
    target text not null,
    threads integer not null,
    format integer not null,
    outcome text not null,
    ratio real,
    record text not null
);
create index by_workload on records (workload, target, threads, outcome, format, ratio);
create index by_target on records (target, threads, outcome, format, workload, ratio);
"""

ADD: Final = """
insert or ignore into records
    (checksum, workload, target, threads, format, outcome, ratio, record)
    values (?, ?, ?, ?, ?, ?, ?, ?)
"""

ALL: Final = """
select number, checksum, workload, target, threads, format, outcome, ratio, record
    from records
    where number > :after and (:target is null or target = :target)
        and (:threads is null or threads = :threads)
    order by number limit :most
"""

OF_WORKLOAD: Final = """
select number, checksum, workload, target, threads, format, outcome, ratio, record
    from records
    where workload = :workload and number > :after and (:target is null or target = :target)
        and (:threads is null or threads = :threads)
    order by number limit :most
"""

BEST: Final = """
select number, checksum, workload, target, threads, format, outcome, ratio, record
    from records
    where workload = :workload and target = :target and threads = :threads
        and outcome = 'ok' and format = :format
    order by ratio, number limit :most offset :passed
"""

# The index alone tells the least ratios, whatever the number of trials.
WINNERS: Final = """
select number, checksum, r.workload, target, threads, format, outcome, ratio, record
    from (
        select workload, min(ratio) as least
            from records
            where target = :target and threads = :threads and outcome = 'ok' and format = :format
                and ratio < 1
            group by workload
    ) as best
    join records as r on r.workload = best.workload and target = :target and threads = :threads
        and outcome = 'ok' and format = :format and ratio = best.least
    order by number
"""

WITHDRAWN: Final = """
select number, checksum, workload, target, threads, format, outcome, ratio, record
    from records
    where target = :target and threads = :threads and outcome = :outcome and format = :format
    order by number
"""

# Keys of a kind begin with its word and a hyphen, which the point follows among characters.
OF_KIND: Final = """
select number, checksum, workload, target, threads, format, outcome, ratio, record
    from records
    where target = :target and threads = :threads and outcome = 'ok' and format = :format
        and workload > :kind || '-' and workload < :kind || '.'
    order by number
"""

TASKS: Final = """
select workload, target, threads, count(*), sum(outcome != 'ok'), max(number)
    from records
    group by workload, target, threads
    order by max(number) desc
"""

COUNT: Final = "select count(*) from records"

REMOVE: Final = "delete from records where number = ?"

DROP_BEYOND: Final = """
delete from records where number in (
    select number from (
        select number, row_number() over (
            partition by workload, target, threads order by ratio, number
        ) as place
        from records where outcome = 'ok' and format = :format and workload not glob 'model-*'
    ) where place > :keep
)
"""

# Of a whole model the last verdict counts, and not the best.
DROP_VERDICTS: Final = """
delete from records where workload glob 'model-*' and number not in (
    select max(number) from records where workload glob 'model-*' and outcome = 'ok'
        and format = :format
        group by workload, target, threads
)
"""

DROP_OLDER: Final = "delete from records where format < ?"
