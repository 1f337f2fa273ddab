/** An id that looks like one of Discord's: the client library tells ids by their 17 to 19 digits. */
export function discordId(n: number): string {
  return String(1_100_000_000_000_000_000n + BigInt(n))
}

/** The id of the `n`th account. */
export const accountId = (n: number): string => discordId(1_000_000 + n)

export const BOT_TOKEN = 'MTEwMDAwMDAwMDAwMDAwMDAwMQ.Gq-1x0.aVeryLocalSecretWhichNobodyMayEverSee'
export const BOT_ID = discordId(1)
export const OWNER_ID = discordId(2)
export const GUILD_ID = discordId(10)
export const BOT_ROLE_ID = discordId(11)
export const GOLD_ROLE_ID = discordId(12)
export const SILVER_ROLE_ID = discordId(13)
