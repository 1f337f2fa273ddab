/* Signing in. The browser posts the form itself, so that no script ever holds a key. */

import { useEffect } from 'preact/hooks'
import { usePlace } from './router.js'

/** Why the last attempt failed, and what to do. */
const PROBLEMS: Readonly<Record<string, string>> = {
  unauthorized: 'This is not a valid key: it was removed, or mistyped.',
  key_expired: 'This key has expired. Create a new one with `latchkey keys rotate` on the server.',
  too_many_wrong_keys: 'Too many wrong keys came from this address. Wait a minute, then try again.',
  rate_limited: 'This key is used too often. Wait a moment, then try again.',
  link_used: 'This link was used, or is older than a minute. Run `latchkey console` again.',
}

export function SignIn({ hasEnded }: { readonly hasEnded: boolean }) {
  useEffect(() => {
    document.title = 'Sign in · Latchkey'
  }, [])
  const { path, parameters } = usePlace()
  const problem = parameters.get('problem') ?? ''
  const wrong = PROBLEMS[problem] ?? 'That did not work. Try again.'
  const next = path === '/sign-in' ? (parameters.get('next') ?? '') : `${path}${window.location.search}`
  return (
    <main class="parts mx-auto max-w-sm p-4 pt-[12vh]">
      <h1 class="text-xl font-bold">Latchkey</h1>
      <form class="parts" method="post" action="/console/session">
        {hasEnded && <p role="status">Your session has ended. Sign in again to go on.</p>}
        {problem !== '' && (
          <p class="notice bad" role="alert">
            {wrong}
          </p>
        )}
        <label class="grid gap-0.5">
          <span>API key</span>
          <input type="password" name="key" required autocomplete="current-password" maxLength={500} />
          <small>Its scopes and environments decide what you see.</small>
        </label>
        <input type="hidden" name="next" value={next} />
        <input type="submit" class="primary" value="Sign in" />
      </form>
      <p class="faint">
        On the server, <code>latchkey console</code> opens it signed in.
      </p>
    </main>
  )
}
