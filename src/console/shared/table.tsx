/* Lists of what the API has, as tables. */

import type { ComponentChildren } from 'preact'
import { type Field, Filters } from './fields.js'
import { CustomerLink, ProductLink, TargetLink } from './links.js'
import { visible } from './plain.js'
import { Answer, Badge, Button, Section, shown } from './show.js'
import type { List } from './use-query.js'

/** By their titles: what a row has there. A number stands on the right. */
export type Columns<Row> = Readonly<Record<string, (row: Row) => ComponentChildren>>

const badge = (word: string) => <Badge text={word} />

/** How what has such a name is shown, whatever it is of. */
const CELLS: Readonly<Record<string, (value: string) => ComponentChildren>> = {
  customerId: (id) => <CustomerLink id={id} />,
  productId: (id) => <ProductLink id={id} />,
  target: (target) => <TargetLink target={target} />,
  ...{ status: badge, state: badge, disposition: badge, level: badge },
}

/** The columns of what rows have by these names, with their titles. */
export function named<Row>(titles: { readonly [Name in keyof Row]?: string }): Columns<Row> {
  const columns = (Object.entries(titles) as [keyof Row & string, string][]).map(([name, title]) => {
    const cell = CELLS[name] as ((value: unknown) => ComponentChildren) | undefined
    return [title, (row: Row) => (cell === undefined ? row[name] : cell(row[name]))]
  })
  return Object.fromEntries(columns)
}

interface TableProps<Row> {
  readonly caption: string
  readonly columns: Columns<Row>
  /** Needed where rows have buttons or what opens: by default a row that changes is another one. */
  readonly keyOf?: ((row: Row) => string) | undefined
  /** Where there is no row: what that means, and what to do. */
  readonly empty?: ComponentChildren
}

/** On a phone each row is a card; a table that is too wide scrolls by itself. */
export function Table<Row>(props: TableProps<Row> & { readonly rows: readonly Row[] }) {
  const { caption, rows, columns, keyOf = JSON.stringify, empty } = props
  const [first] = rows
  if (first === undefined) return shown(empty)
  const all = Object.entries(columns).map(([title, cell]) => {
    return { title, cell, look: typeof cell(first) === 'number' ? 'number' : undefined }
  })
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard.
    <section class="overflow-x-auto" aria-label={visible(caption)} tabIndex={0}>
      <table class="w-full">
        <thead>
          <tr>
            {all.map(({ title, look }) => (
              <th key={title} scope="col" class={look}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {all.map(({ title, cell, look }) => (
                <td key={title} class={look} data-title={title}>
                  {shown(cell(row))}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

type ListingProps<Row> = Omit<TableProps<Row>, 'caption'> & {
  readonly title: string
  /** What it lists, if the title does not say that. */
  readonly caption?: string
  readonly fields?: readonly Field[]
  readonly aside?: ComponentChildren
  readonly children?: ComponentChildren
} & ({ readonly rows: readonly Row[] } | { readonly list: List<Row> })

/** A part of a page that is a list, with what it is filtered by; one by pages has a button for more. */
export function Listing<Row>(props: ListingProps<Row>) {
  const { title, caption = title, fields = [], aside, children, columns, keyOf, empty } = props
  const table = { caption, columns, keyOf, empty }
  const list = 'list' in props ? props.list : null
  return (
    <Section title={title} aside={<Filters fields={fields}>{aside}</Filters>}>
      {children}
      {list !== null && <Answer query={list}>{({ items }) => <Table rows={items} {...table} />}</Answer>}
      {list?.data?.hasMore && <Button text="More" isDisabled={list.isLoading} onClick={list.more} />}
      {'rows' in props && <Table rows={props.rows} {...table} />}
    </Section>
  )
}
