/** An instant as file names can hold it, in an order that is also that of time: `20260301T120000.500Z`. */
export function timeInName(instant: number): string {
  return new Date(instant).toISOString().replaceAll(/[-:]/g, '')
}

const TIME = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d\.\d{3}Z)$/

/** Epoch milliseconds; null where the text is no such time. */
export function readTimeInName(text: string): number | null {
  const instant = Date.parse(text.replace(TIME, '$1-$2-$3T$4:$5:$6'))
  return TIME.test(text) && !Number.isNaN(instant) ? instant : null
}
