/* What pages are made of: their heading, buttons, and lists with filters. */

import type { ComponentChildren } from 'preact'
import { type Field, Filters } from './filters.js'
import { PagedTable, Section, Table } from './show.js'
import { Text } from './text.js'
import type { Pages } from './use-query.js'

/** The heading of a page, with what leads elsewhere beside it. */
export function Title({ text, children }: { readonly text: string; readonly children?: ComponentChildren }) {
  return (
    <div class="title">
      <h1>
        <Text>{text}</Text>
      </h1>
      {children}
    </div>
  )
}

export interface ButtonProps {
  readonly text: string
  /** Where several have the same text. */
  readonly name?: string | undefined
  readonly look?: 'small' | 'danger' | undefined
  readonly isDisabled?: boolean | undefined
  readonly onClick: () => void
}

export function Button({ text, name, look, isDisabled, onClick }: ButtonProps) {
  return (
    <button type="button" class={look} aria-label={name} disabled={isDisabled} onClick={onClick}>
      {text}
    </button>
  )
}

interface RefreshProps {
  readonly of: { readonly reload: () => void; readonly isLoading: boolean }
}

export const Refresh = ({ of: { reload, isLoading } }: RefreshProps) => (
  <Button text="Refresh" isDisabled={isLoading} onClick={reload} />
)

type ListingProps<Row> = Omit<Parameters<typeof Table<Row>>[0], 'caption' | 'keyOf' | 'rows'> & {
  readonly title: string
  /** Needed where rows have buttons or what opens: by default a row that changes is another one. */
  readonly keyOf?: (row: Row) => string
  /** What it lists, if the title does not say that. */
  readonly caption?: string
  readonly fields?: readonly Field[]
  /** Further controls. */
  readonly aside?: ComponentChildren
  readonly children?: ComponentChildren
} & ({ readonly rows: readonly Row[] } | { readonly pages: Pages<Row> })

/** A part of a page that is a list, with what it is filtered by. */
export function Listing<Row>({
  title,
  caption = title,
  keyOf = JSON.stringify,
  fields = [],
  aside,
  children,
  ...list
}: ListingProps<Row>) {
  const same = { caption, keyOf }
  const controls = (
    <Filters fields={fields}>
      {aside}
      {'pages' in list && <Refresh of={list.pages} />}
    </Filters>
  )
  return (
    <Section title={title} aside={controls}>
      {children}
      {'pages' in list ? <PagedTable {...list} {...same} /> : <Table {...list} {...same} />}
    </Section>
  )
}
