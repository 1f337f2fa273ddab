/** More slips than this in a name, and it was meant otherwise. */
const MAX_SLIPS = 3

/** The name that was probably meant by a text that is none, or null: at most a third of its characters may be slips. */
export function nearestName(text: string, names: readonly string[]): string | null {
  const maxSlips = Math.min(MAX_SLIPS, Math.ceil(text.length / 3))
  const [nearest] = names
    // Ahead of the comparison, whose cost grows with the length of what somebody sent.
    .filter((name) => Math.abs(name.length - text.length) <= maxSlips)
    .map((name) => ({ name, slips: slipsBetween(text.toLowerCase(), name.toLowerCase()) }))
    .filter(({ slips }) => slips <= maxSlips)
    .sort((a, b) => a.slips - b.slips)
  return nearest?.name ?? null
}

/** How many characters were left out, added or exchanged: the Levenshtein distance. */
function slipsBetween(text: string, name: string): number {
  let row = Array.from({ length: name.length + 1 }, (_, length) => length)
  for (const [index, typed] of [...text].entries()) {
    const next = [index + 1]
    for (const [column, meant] of [...name].entries()) {
      const [skipped = 0, exchanged = 0, added = 0] = [row[column + 1], row[column], next[column]]
      next.push(Math.min(skipped + 1, added + 1, exchanged + (typed === meant ? 0 : 1)))
    }
    row = next
  }
  return row[name.length] ?? 0
}
