/* How answers are shown: loading, failed, empty, in tables and lists. */

import type { ComponentChildren } from 'preact'
import type { Problem } from '../api.js'
import type { Pages, Query } from './use-query.js'

/** What to do about a refusal, where its own words do not say it. */
const TODO: Readonly<Record<string, string>> = {
  unreachable: 'Look whether it runs, and your network, then try again.',
  store_unavailable: 'Try again in a moment. If it lasts, run `latchkey doctor` on the server.',
  rate_limited: 'Wait a moment, then try again.',
  forbidden: 'Sign in with a key that has it.',
  internal_error: 'Give the request id to the people who run Latchkey: the log has the cause.',
  bug: 'Load the page again. If it lasts, please report it.',
}

/** A refusal in plain words, with what to do. */
export function ProblemBox({ problem, retry }: { readonly problem: Problem; readonly retry?: () => void }) {
  const { message, code, requestId, issues } = problem
  return (
    <div class="problem" role="alert">
      <p>
        <strong>{message}</strong> {TODO[code]}
      </p>
      {issues.length > 0 && (
        <ul>
          {issues.map(({ path, message: said }) => (
            <li key={path}>
              {path === '' ? '' : `${path}: `}
              {said}
            </li>
          ))}
        </ul>
      )}
      <p class="faint">
        {code}
        {requestId !== null && ` · request ${requestId}`}
      </p>
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  )
}

interface AnswerProps<Data> {
  readonly query: Query<Data>
  readonly children: (data: Data) => ComponentChildren
}

/** Shows an answer once it is there, and what is wrong with it. */
export function Answer<Data>({ query, children }: AnswerProps<Data>) {
  const { data, problem, isLoading, isStale, reload } = query
  return (
    <div aria-busy={isLoading} class={isStale ? 'stale' : undefined}>
      {problem !== null && !isLoading && <ProblemBox problem={problem} retry={reload} />}
      {data === undefined ? isLoading && <Loading /> : children(data)}
    </div>
  )
}

export function Loading() {
  return <p class="faint loading">Loading…</p>
}

/** Where there is nothing: says so, and what to do. */
export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <div class="empty">{children}</div>
}

/** One part of a page, with its heading. */
export function Section({
  title,
  aside,
  children,
}: {
  readonly title: string
  /** Beside the heading: buttons, a filter. */
  readonly aside?: ComponentChildren
  readonly children: ComponentChildren
}) {
  return (
    <section class="section">
      <header>
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  )
}

export type Tone = 'good' | 'warn' | 'bad' | 'plain'

/** Tones of the words that the API has for states; others are plain. */
const TONES: Readonly<Record<string, Tone>> = {
  ...{ active: 'good', ok: 'good', applied: 'good', delivered: 'good', done: 'good' },
  ...{
    ending: 'warn',
    held: 'warn',
    warn: 'warn',
    retrying: 'warn',
    due: 'warn',
    parked: 'warn',
    paused: 'warn',
  },
  ...{ limited: 'warn', pending: 'warn', running: 'warn', unconfirmed: 'warn' },
  ...{ settled: 'good', gained: 'good', lost: 'bad' },
  ...{ blocked: 'bad', fail: 'bad', failed: 'bad', quarantined: 'bad', stopped: 'bad', charged_back: 'bad' },
}

/** A state in a word. The word says it, not the color alone. */
export function Badge({
  children,
  tone = TONES[children] ?? 'plain',
}: {
  readonly children: string
  readonly tone?: Tone
}) {
  return <span class={`badge ${tone}`}>{children.replaceAll('_', ' ')}</span>
}

/** Names and values. */
export function Facts({
  of,
}: {
  readonly of: readonly (readonly [name: string, value: ComponentChildren])[]
}) {
  return (
    <dl class="facts">
      {of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

export interface Column<Row> {
  readonly title: string
  readonly cell: (row: Row) => ComponentChildren
  /** Numbers stand on the right. */
  readonly isNumber?: true
}

interface TableProps<Row> {
  /** What it lists: for screen readers. */
  readonly caption: string
  readonly rows: readonly Row[]
  readonly columns: readonly Column<Row>[]
  readonly keyOf: (row: Row) => string
  /** Where there is no row: what that means, and what to do. */
  readonly empty: ComponentChildren
}

/** On a narrow screen it scrolls by itself. */
export function Table<Row>({ caption, rows, columns, keyOf, empty }: TableProps<Row>) {
  if (rows.length === 0) return <Empty>{empty}</Empty>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard.
    <section class="scrolls" aria-label={caption} tabIndex={0}>
      <table>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ title, isNumber }) => (
              <th key={title} scope="col" class={isNumber && 'number'}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ title, cell, isNumber }) => (
                <td key={title} class={isNumber && 'number'}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

/** A list by pages as a table, with a button for more. */
export function PagedTable<Row>({
  pages,
  ...table
}: Omit<TableProps<Row>, 'rows'> & { readonly pages: Pages<Row> }) {
  const { data, problem, isLoading, hasMore, more, reload } = pages
  return (
    <div aria-busy={isLoading}>
      {problem !== null && <ProblemBox problem={problem} retry={data === undefined ? reload : more} />}
      {data === undefined ? isLoading && <Loading /> : <Table rows={data} {...table} />}
      {hasMore && (
        <button type="button" class="more" onClick={more} disabled={isLoading}>
          {isLoading ? 'Loading…' : 'More'}
        </button>
      )}
    </div>
  )
}
