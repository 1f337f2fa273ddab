/** Maximum edit distance for a suggestion. */
const MAX_SLIPS = 3

/** The name most like a mistyped one, or null: at most a third of its characters may differ. */
export function nearestName(text: string, names: readonly string[]): string | null {
  const maxSlips = Math.min(MAX_SLIPS, Math.ceil(text.length / 3))
  const [nearest] = names
    // Before the comparison, whose cost grows with the length of the input.
    .filter((name) => Math.abs(name.length - text.length) <= maxSlips)
    .map((name) => ({ name, slips: slipsBetween(text.toLowerCase(), name.toLowerCase()) }))
    .filter(({ slips }) => slips <= maxSlips)
    .sort((a, b) => a.slips - b.slips)
  return nearest?.name ?? null
}

/** The Levenshtein distance: characters left out, added or exchanged. */
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
