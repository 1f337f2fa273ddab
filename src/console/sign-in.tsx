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
  const problem = parameters.get('problem')
  const next = path === '/sign-in' ? (parameters.get('next') ?? '') : `${path}${window.location.search}`
  return (
    <main class="max-w-sm pt-[12vh]">
      <h1>Latchkey</h1>
      <form class="grid gap-4" method="post" action="/console/session">
        {hasEnded && <p role="status">Your session has ended. Sign in again to go on.</p>}
        {problem !== null && (
          <p class="problem" role="alert">
            {PROBLEMS[problem] ?? 'That did not work. Try again.'}
          </p>
        )}
        <label class="field">
          <span>API key</span>
          <input
            type="password"
            name="key"
            required
            autocomplete="current-password"
            autocapitalize="off"
            spellcheck={false}
            maxLength={500}
          />
          <small>Its scopes and environments decide what you see.</small>
        </label>
        <input type="hidden" name="next" value={next} />
        <button type="submit" class="primary">
          Sign in
        </button>
      </form>
      <p class="faint">
        On the server itself, <code>latchkey console</code> opens this page signed in, without a key.
      </p>
    </main>
  )
}
