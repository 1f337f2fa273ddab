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
    <div class="problem border border-bad bg-bad-back" role="alert">
      <p>
        <strong>{message}</strong> {TODO[code]}
      </p>
      {issues.map(({ path, message: said }) => (
        <p key={path}>{path === '' ? said : `${path}: ${said}`}</p>
      ))}
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
  readonly query: Omit<Query<Data>, 'isStale'>
  readonly children: (data: Data) => ComponentChildren
}

/** Shows an answer once it is there, and what is wrong with it. */
export function Answer<Data>({ query, children }: AnswerProps<Data>) {
  const { data, problem, isLoading, reload } = query
  return (
    <div class="sections" aria-busy={isLoading}>
      {problem !== null && !isLoading && <ProblemBox problem={problem} retry={reload} />}
      {data === undefined ? isLoading && <Loading /> : children(data)}
    </div>
  )
}

export function Loading() {
  return <p class="faint">Loading…</p>
}

/** Where there is nothing: says so, and what to do. */
export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <div class="empty">{children}</div>
}

interface SectionProps {
  readonly title: string
  /** Beside the heading: buttons, a filter. */
  readonly aside?: ComponentChildren
  readonly children: ComponentChildren
}

/** One part of a page, with its heading. */
export function Section({ title, aside, children }: SectionProps) {
  return (
    <section class="section grid grid-cols-1 gap-3 rounded-lg border border-line bg-panel px-4 pt-3 pb-4">
      <header class="flex flex-wrap items-center justify-between gap-2 *:min-w-0 *:max-w-full">
        <h2>{title}</h2>
        {aside}
      </header>
      {children}
    </section>
  )
}

export type Tone = 'good' | 'warn' | 'bad' | 'plain'

/** The words that the API has for states, by their tone; others are plain. */
const WORDS: Readonly<Record<Exclude<Tone, 'plain'>, string>> = {
  good: 'active ok applied delivered done settled gained',
  warn: 'ending held warn retrying due parked paused limited pending running unconfirmed',
  bad: 'blocked fail failed quarantined stopped charged_back lost',
}
const TONES = new Map<string, Tone>(
  (['good', 'warn', 'bad'] as const).flatMap((tone) =>
    WORDS[tone].split(' ').map((word) => [word, tone] as const),
  ),
)

interface BadgeProps {
  readonly children: string
  readonly tone?: Tone
}

/** A state in a word. The word says it, not the color alone. */
export function Badge({ children, tone = TONES.get(children) ?? 'plain' }: BadgeProps) {
  return <span class={`badge ${tone}`}>{children.replaceAll('_', ' ')}</span>
}

type Fact = readonly [name: string, value: ComponentChildren]

/** Names and values. */
export function Facts({ of }: { readonly of: readonly Fact[] }) {
  return (
    <dl class="grid grid-cols-[repeat(auto-fill,minmax(min(13rem,100%),1fr))] gap-x-5 gap-y-2">
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
    <section class="overflow-x-auto" aria-label={caption} tabIndex={0}>
      <table class="w-full">
        <caption class="sr-only">{caption}</caption>
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

type PagedTableProps<Row> = Omit<TableProps<Row>, 'rows'> & { readonly pages: Pages<Row> }

/** A list by pages as a table, with a button for more. */
export function PagedTable<Row>({ pages, ...table }: PagedTableProps<Row>) {
  const { data, isLoading, hasMore, more, reload } = pages
  return (
    <div class="sections">
      <Answer query={{ ...pages, reload: data === undefined ? reload : more }}>
        {(rows) => <Table rows={rows} {...table} />}
      </Answer>
      {hasMore && (
        <button type="button" onClick={more} disabled={isLoading}>
          {isLoading ? 'Loading…' : 'More'}
        </button>
      )}
    </div>
  )
}
