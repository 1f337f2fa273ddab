/* Filters: parts of the address, so that what they leave can be sent to somebody. */

import type { ComponentChildren } from 'preact'
import { type Parameters, setParameters, usePlace } from '../router.js'

/** Values that say what they are, or with a title each. */
type Options = readonly (string | readonly [value: string, title: string])[]

interface SelectProps {
  readonly label: string
  readonly options: Options
  /** What the empty value means; omitted: it can't be chosen. */
  readonly none?: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly look?: 'choice' | 'field'
}

/** One of a few values. */
export function Select({ label, options, none, value, onChange, look = 'field' }: SelectProps) {
  const titled = options.map((one) => (typeof one === 'string' ? ([one, one] as const) : one))
  // The address may hold another one, which the API then refuses: it must not look like none.
  const isOther = value !== '' && titled.every(([one]) => one !== value)
  const all = [
    ...(none === undefined ? [] : [['', none] as const]),
    ...(isOther ? [[value, value] as const] : []),
    ...titled,
  ]
  return (
    <label class={look}>
      <span>{label}</span>
      <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        {all.map(([one, title]) => (
          <option key={one} value={one}>
            {title}
          </option>
        ))}
      </select>
    </label>
  )
}

interface ChooseProps extends Pick<SelectProps, 'label' | 'options' | 'none'> {
  /** Of the parameter. */
  readonly name: string
}

/** A parameter that is one of a few values, or none. */
export function Choose({ name, none = 'all', ...rest }: ChooseProps) {
  const value = usePlace().parameters.get(name) ?? ''
  const choose = (chosen: string): void => setParameters({ [name]: chosen }, true)
  return <Select look="choice" none={none} value={value} onChange={choose} {...rest} />
}

interface DayProps extends Pick<ChooseProps, 'label' | 'name'> {
  /** What the address says, or means without the parameter. */
  readonly value: string
  /** What else the address must say once this is chosen. */
  readonly fixed: Parameters
}

function Day({ label, name, value, fixed }: DayProps) {
  return (
    <label class="choice">
      <span>{label}</span>
      <input
        type="date"
        value={value}
        // While a date is typed, it is empty.
        onChange={({ currentTarget: { value: day } }) =>
          day !== '' && setParameters({ ...fixed, [name]: day }, true)
        }
      />
    </label>
  )
}

export type Field = ChooseProps | DayProps

interface FiltersProps {
  readonly fields: readonly Field[]
  /** Buttons beside them. */
  readonly children?: ComponentChildren
}

export function Filters({ fields, children }: FiltersProps) {
  return (
    <div class="filters">
      {fields.map((field) =>
        'options' in field ? <Choose key={field.name} {...field} /> : <Day key={field.name} {...field} />,
      )}
      {children}
    </div>
  )
}

/** Those of these parameters that the address has: what a list is filtered by. */
export function useFilter(names: readonly string[]): Readonly<Record<string, string>> {
  const { parameters } = usePlace()
  return Object.fromEntries([...parameters].filter(([name]) => names.includes(name)))
}
