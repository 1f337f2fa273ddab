import { createClient } from 'latchkey/client'

/** One for the process: it keeps answers, and one stream that keeps them right. */
export const access = createClient({
  url: process.env.LATCHKEY_URL ?? 'http://127.0.0.1:4680',
  apiKey: process.env.LATCHKEY_API_KEY,
  onUnavailable: 'deny',
})

/** Put your session here: the id that the payments service gave this customer. Null: nobody is signed in. */
export function customerIdIn(cookies: string): string | null {
  return /(?:^|; )customer=([^;]+)/.exec(cookies)?.[1] ?? null
}
