import { z } from 'zod'

/** A text of one form; one without anything in it is told as empty. */
function textOf(form: RegExp, problemOf: (text: string) => string) {
  return z.string().regex(form, {
    error: ({ input }) => (/\S/.test(String(input)) ? problemOf(String(input)) : 'is empty'),
    abort: true,
  })
}

const NO_DISCORD_ID = 'must be a Discord id: a whole number, such as "1100000000000000010"'

/** Ids of Discord are whole numbers of 64 bits. Here is asked only what no id can break. */
export const discordIdSchema = textOf(/^[1-9]\d{0,19}$/, () => NO_DISCORD_ID).refine(
  (id) => BigInt(id) < 2n ** 64n,
  NO_DISCORD_ID,
)

/** The adapter refuses what is none, too, but by then a mistyped group has taken the place of the right one. */
export const telegramGroupSchema = textOf(
  /^-[1-9]\d{0,15}$/,
  () => 'must be the id of a Telegram group: a whole number below zero, such as "-1001234567890"',
)

/** A token goes into a header or a path, which nothing but these characters can be part of. */
export const botTokenSchema = textOf(/^[!-~]+$/, (token) =>
  /^Bot\s/i.test(token)
    ? 'must be the token alone, without "Bot" before it'
    : 'must be the token alone: it has a space, a line break or another character that no token has',
)
