import fc from 'fast-check'

/** White space to put between the tokens of a JSON text, in turns; a part of it may be a line break of any kind. */
export const SPACES: fc.Arbitrary<readonly string[]> = fc.oneof(
  fc.constantFrom([''], [' '], ['\n'], ['\r\n'], ['\n\t\t'], ['\n', '  ', '']),
  fc.array(fc.constantFrom('', '', ' ', '\t', '\n', '\r\n', '\r\n    ', '\n  ', '\n\t'), {
    minLength: 1,
    maxLength: 30,
  }),
)

/** The value as JSON with this white space between its tokens. */
export function laidOut(value: unknown, spaces: readonly string[]): string {
  let place = 0
  const space = (): string => {
    place += 1
    return spaces[place % spaces.length] ?? ''
  }
  const write = (node: unknown): string => {
    if (Array.isArray(node))
      return `[${node.map((one) => space() + write(one) + space()).join(',')}${space()}]`
    if (typeof node !== 'object' || node === null) return JSON.stringify(node)
    const members = Object.entries(node).map(
      ([name, one]) => `${space()}${JSON.stringify(name)}${space()}:${space()}${write(one)}${space()}`,
    )
    return `{${members.join(',')}${space()}}`
  }
  return space() + write(value) + space()
}
