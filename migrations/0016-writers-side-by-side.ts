import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.js'

/**
 * Lets transactions write beside each other on PostgreSQL. Numbers from a sequence are no order for the change log then:
 * a lower one may be committed later. So its numbers begin with that of their transaction, and `changes`, from now on a
 * view, ends before the oldest transaction of this database that is under way. What an older version reads and writes
 * by that name stays right.
 */
export function writersSideBySide({ isShared, integer, text }: ColumnTypes): Migration {
  return {
    async up(db: Kysely<unknown>) {
      if (!isShared) return
      // Renaming waits for all who read the table, such as a dump, and everybody else waits behind it.
      await sql`set local lock_timeout = '3s'`.execute(db)
      await sql`create sequence event_seqs`.execute(db)
      await sql`select setval('event_seqs', max(seq)) from events having max(seq) > 0`.execute(db)
      await sql`alter table changes rename to change_log`.execute(db)
      await sql`alter table change_log alter column cursor drop identity`.execute(db)
      // The numbers of a log in partitions may leave the highest of them behind.
      await sql`do $$ begin
          if (select relkind = 'p' from pg_class where oid = 'change_log'::regclass) and not exists (
            select from pg_partitioned_table where partrelid = 'change_log'::regclass and partdefid <> 0)
          then create table change_log_rest partition of change_log default; end if;
        end $$`.execute(db)
      // One row: a transaction, and its place in the log. `written_by` says where the row was written itself.
      await db.schema
        .createTable('change_log_base')
        .addColumn('xid', integer, (column) => column.primaryKey())
        .addColumn('cursor', integer, (column) => column.notNull())
        .addColumn('written_by', text, (column) => column.notNull())
        .execute()
      await sql`insert into change_log_base
        select pg_current_xact_id()::text::bigint, coalesce(max(cursor), 0) + 1, '' from change_log`.execute(
        db,
      )
      await sql`create function change_log_place() returns bigint language sql volatile as $$
          select (pg_current_xact_id()::text::bigint - coalesce(max(xid), 0)) * 4096 + coalesce(max(cursor), 0)
          from change_log_base $$`.execute(db)
      // Only for an older version, which writes alone: ours names the number.
      await sql`create sequence change_log_within`.execute(db)
      await sql`alter table change_log alter column cursor
        set default change_log_place() + nextval('change_log_within') % 4096`.execute(db)
      await sql`create view changes as
        select cursor, at, environment, customer_id, product_id, before, after, cause_kind, cause_event_id
        from change_log where cursor < (
          with own as (select oid from pg_database where datname = current_database())
          select (coalesce(
              (select min(under_way::text::bigint) from pg_snapshot_xip(pg_current_snapshot()) as under_way
                where not exists (select from pg_stat_get_activity(null) as session
                    where session.backend_xid = under_way::xid and session.datid <> (select oid from own))
                  and not exists (select from pg_prepared_xact() as prepared
                    where prepared.transaction = under_way::xid and prepared.dbid <> (select oid from own))),
              case when pg_is_in_recovery() then pg_snapshot_xmin(pg_current_snapshot())
                else pg_snapshot_xmax(pg_current_snapshot()) end::text::bigint
            ) - base.xid) * 4096 + base.cursor
          from (select coalesce(max(xid), 0) as xid, coalesce(max(cursor), 0) as cursor from change_log_base) as base
        )`.execute(db)
    },
  }
}
