import { type Kysely, type Selectable, sql } from 'kysely'
import type { Database } from './schema.js'
import { readHistory, type StateRow, stateOf } from './sources.js'
import { eventInFormIfReadable, isAltered } from './stored-form.js'

/** A body has up to a mebibyte. */
const BODIES_AT_ONCE = 16

/** A form has up to some kilobytes. */
const FORMS_AT_ONCE = 500

const NAMED_AT_MOST = 3

/** How many rows were read, and how many of them do not hold what this program wrote. */
export interface RowCheck {
  readonly read: number
  readonly damaged: number
  /** What the first few of those belong to: `evt_1 in live`. */
  readonly first: readonly string[]
}

/** Compares every stored body with its hash, but for those that retention or an erasure removed or rewrote. */
export async function compareBodies(db: Kysely<Database>): Promise<RowCheck> {
  async function* bodies() {
    yield* inSteps<{ seq: number } & BodyRow>((last) =>
      db
        .selectFrom('events')
        .select(['seq', ...BODY_COLUMNS])
        .where('seq', '>', last?.seq ?? 0)
        .where('body_removed', 'is', null)
        .orderBy('seq')
        .limit(BODIES_AT_ONCE)
        .execute(),
    )
    yield* inSteps<BodyRow>((last) => {
      const reached = [last?.environment ?? '', last?.event_id ?? '', last?.body_sha256 ?? '']
      return db
        .selectFrom('event_conflicts')
        .select(BODY_COLUMNS)
        .where(sql<boolean>`(environment, event_id, body_sha256) > (${sql.join(reached)})`)
        .where('body_removed', 'is', null)
        .orderBy('environment')
        .orderBy('event_id')
        .orderBy('body_sha256')
        .limit(BODIES_AT_ONCE)
        .execute()
    })
  }
  return check(bodies(), isAltered, ({ event_id: id, environment }) => `${id} in ${environment}`)
}

const BODY_COLUMNS = ['environment', 'event_id', 'body_sha256', 'body', 'body_removed'] as const
type BodyRow = Pick<Database['events'], 'environment' | 'event_id' | 'body_sha256' | 'body' | 'body_removed'>

/** Reads what was understood of each event. */
export function readEventForms(db: Kysely<Database>): Promise<RowCheck> {
  const rows = inSteps<{ seq: number; environment: string; event_id: string; normalized: string | null }>(
    (last) =>
      db
        .selectFrom('events')
        .select(['seq', 'environment', 'event_id', 'normalized'])
        .where('seq', '>', last?.seq ?? BEFORE_ANY)
        .where('normalized', 'is not', null)
        .orderBy('seq')
        .limit(FORMS_AT_ONCE)
        .execute(),
  )
  const isUnreadable = ({ normalized }: { normalized: string | null }) =>
    eventInFormIfReadable(normalized ?? '') === null
  return check(rows, isUnreadable, ({ event_id: id, environment }) => `${id} in ${environment}`)
}

/** Reads the state and the history of each source. */
export function readSourceForms(db: Kysely<Database>): Promise<RowCheck> {
  const rows = inSteps<SourceRow>((last) =>
    db
      .selectFrom('sources')
      .select(['seq', 'environment', 'kind', 'source_id', 'customer_id', 'newest_at', 'state', 'history'])
      .where('seq', '>', last?.seq ?? BEFORE_ANY)
      .orderBy('seq')
      .limit(FORMS_AT_ONCE)
      .execute(),
  )
  return check(
    rows,
    isUnreadableSource,
    ({ kind, source_id: id, environment }) => `${kind} ${id} in ${environment}`,
  )
}

type SourceRow = StateRow & Pick<Selectable<Database['sources']>, 'seq' | 'environment' | 'history'>

/** A damaged row may have any number. */
const BEFORE_ANY = Number.MIN_SAFE_INTEGER

function isUnreadableSource(row: SourceRow): boolean {
  try {
    stateOf(row)
    readHistory(row)
    return false
  } catch {
    return true
  }
}

/** All rows, few in each query, so that a daemon beside it is not held up. */
async function* inSteps<Row>(
  loadBeyond: (last: Row | undefined) => Promise<readonly Row[]>,
): AsyncGenerator<Row> {
  let last: Row | undefined
  do {
    const rows = await loadBeyond(last)
    yield* rows
    last = rows.at(-1)
  } while (last !== undefined)
}

async function check<Row>(
  rows: AsyncIterable<Row>,
  isDamaged: (row: Row) => boolean,
  nameOf: (row: Row) => string,
): Promise<RowCheck> {
  let [read, damaged] = [0, 0]
  const first: string[] = []
  for await (const row of rows) {
    read += 1
    if (!isDamaged(row)) continue
    damaged += 1
    if (first.length < NAMED_AT_MOST) first.push(nameOf(row))
  }
  return { read, damaged, first }
}
