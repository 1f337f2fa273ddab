/**
 * The calls that share a limit, as far as it can be told before Discord does: those of one route in one guild. Takes a
 * route or a whole address.
 */
export function bucketOf(address: string): string {
  const path = /\/(guilds|users)\/[^?]*/.exec(address)?.[0] ?? address
  return path.replace(/(?<=\/(members|roles)\/)\d+/g, ':id')
}
