/* How answers are shown: loading, failed, empty, in parts of a page. */

import type { ComponentChildren } from 'preact'
import { type Problem, refresh } from '../api.js'
import { Said } from './text.js'
import type { Query } from './use-query.js'

export type Of<Shown> = { readonly of: Shown }
type Parts = ComponentChildren

/** A text may be from elsewhere. */
export const shown = (value: Parts): Parts => (typeof value === 'string' ? <Said>{value}</Said> : value)

/** What there is to say: null, false and undefined are nothing. */
const isSaid = (value: unknown): boolean => (value ?? false) !== false && value !== ''

type SaysProps = { readonly text: string; readonly look?: 'faint' | 'notice' | 'bad' }
export const Says = ({ text, look }: SaysProps) => <p class={look}>{shown(text)}</p>

/** A list of what there is to say. */
export const Notes = ({ of }: Of<readonly Parts[]>) => (
  <ul class="list-disc pl-5 empty:hidden">
    {of.filter(isSaid).map((one, index) => (
      <li key={typeof one === 'string' ? one : index}>{shown(one)}</li>
    ))}
  </ul>
)

/** Names and values, as far as there is something to say. */
export const Facts = ({ of }: Of<readonly (readonly [name: string, value: Parts])[]>) => (
  <dl class="grid grid-cols-[repeat(auto-fill,minmax(min(13rem,100%),1fr))] gap-x-5 gap-y-2">
    {of.map(([name, value]) => (
      <div key={name} hidden={!isSaid(value)}>
        <dt class="label">{shown(name)}</dt>
        <dd>{shown(value)}</dd>
      </div>
    ))}
  </dl>
)

/** What to do about a refusal, where its own words do not say it. */
const TODO: Readonly<Record<string, string>> = {
  unreachable: 'Look whether it runs, and your network, then try again.',
  store_unavailable: 'Try again in a moment. If it lasts, run `latchkey doctor` on the server.',
  rate_limited: 'Wait a moment, then try again.',
  forbidden: 'Sign in with a key that has it.',
  internal_error: 'Give the request id to the people who run Latchkey: the log has the cause.',
  bad_id: 'Use the commands of `latchkey` on the server for it.',
  bug: 'Load the page again. If it lasts, please report it.',
}

export function ProblemBox({ problem, retry }: { readonly problem: Problem; readonly retry?: () => void }) {
  const { message, code, requestId, issues } = problem
  return (
    <div class="notice bad border" role="alert">
      <strong>{shown(message)}</strong>
      <Notes
        of={[...issues.map(({ path, message: why }) => (path === '' ? why : `${path}: ${why}`)), TODO[code]]}
      />
      <Says text={requestId === null ? code : `${code} · request ${requestId}`} look="faint" />
      {retry && <Button text="Try again" onClick={retry} />}
    </div>
  )
}

type AnswerProps<Data> = { readonly query: Query<Data>; readonly children: (data: Data) => Parts }

/** Shows an answer once it is there, and what is wrong with it. */
export const Answer = <Data,>({ query, children }: AnswerProps<Data>) => (
  <div class="parts" aria-busy={query.isLoading}>
    {query.problem && !query.isLoading && <ProblemBox problem={query.problem} retry={query.reload} />}
    {query.data === undefined && query.isLoading && <Says text="Loading…" look="faint" />}
    {query.data !== undefined && shown(children(query.data))}
  </div>
)

interface ButtonProps {
  readonly text: string
  /** Where several have the same text. */
  readonly name?: string | undefined
  readonly look?: 'small' | 'danger' | undefined
  readonly isDisabled?: boolean | undefined
  readonly isPressed?: boolean
  readonly onClick: () => void
}

export function Button({ text, name, look, isDisabled, isPressed, onClick }: ButtonProps) {
  const state = { disabled: isDisabled, 'aria-pressed': isPressed, 'aria-label': name }
  return (
    <button type="button" class={look} onClick={onClick} {...state}>
      {text}
    </button>
  )
}

type Counted = { readonly reached: number; readonly total: number }
type ProgressProps = Counted & { readonly name: string; readonly what: string }

export const Progress = ({ name, reached, total, what }: ProgressProps) => (
  <p>
    <progress class="w-full accent-link" aria-label={name} max={total || 1} value={reached} />{' '}
    {`${reached} of ${total} ${what}`}
  </p>
)

type PartProps = { readonly title: Parts; readonly aside?: Parts; readonly children?: Parts }

export const Title = ({ title, children }: PartProps) => (
  <div class="acts">
    <h1 class="text-xl font-bold">{shown(title)}</h1>
    {children}
    <Button text="Refresh" onClick={refresh} />
  </div>
)

export const Section = ({ title, aside, children }: PartProps) => (
  <section class="section parts rounded-lg border border-line bg-panel px-4 pt-3 pb-4">
    <header class="flex flex-wrap items-center justify-between gap-2 *:min-w-0 *:max-w-full">
      <h2 class="font-bold">{shown(title)}</h2>
      <div class="acts">{aside}</div>
    </header>
    {shown(children)}
  </section>
)

/** The words that the API has for states, by their tone; others are plain. */
const WORDS = {
  good: 'active ok applied delivered done settled gained',
  warn: 'ending held warn retrying due parked paused limited pending running unconfirmed',
  bad: 'blocked fail failed quarantined stopped charged_back lost',
}
type Tone = keyof typeof WORDS

/** A state in a word. The word says it, not the color alone. */
export function Badge({ text, tone }: { readonly text: string; readonly tone?: Tone }) {
  const [known = 'plain'] = Object.entries(WORDS).find(([, all]) => all.split(' ').includes(text)) ?? []
  return <span class={`badge ${tone ?? known}`}>{text.replaceAll('_', ' ')}</span>
}
