/* Choices among a few words that are part of the address: filters. */

import { setParameters, usePlace } from '../router.js'

interface ChooseProps {
  readonly label: string
  /** Of the parameter. */
  readonly name: string
  readonly options: readonly (readonly [value: string, title: string])[]
  /** What an address without the parameter means; by default, everything. */
  readonly none?: string
}

/** A filter: one of a few values of a parameter, or none. */
export function Choose({ label, name, options, none = 'all' }: ChooseProps) {
  const chosen = usePlace().parameters.get(name) ?? ''
  // The address may hold another one, which the API then refuses: it must not look like none.
  const isOther = chosen !== '' && options.every(([value]) => value !== chosen)
  return (
    <label class="choice">
      <span>{label}</span>
      <select
        value={chosen}
        onChange={({ currentTarget }) => setParameters({ [name]: currentTarget.value }, true)}
      >
        <option value="">{none}</option>
        {isOther && <option value={chosen}>{chosen}</option>}
        {options.map(([value, title]) => (
          <option key={value} value={value}>
            {title}
          </option>
        ))}
      </select>
    </label>
  )
}

/** Those of these parameters that the address has: what a list is filtered by. */
export function useFilter(names: readonly string[]): Readonly<Record<string, string>> {
  const { parameters } = usePlace()
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = parameters.get(name)
      return value === null ? [] : [[name, value]]
    }),
  )
}
