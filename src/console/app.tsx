/* The frame around every page: who is signed in, where one can go, and what went wrong. */

import type { ComponentChildren } from 'preact'
import { useEffect, useErrorBoundary, useRef, useState } from 'preact/hooks'
import { get, hasEnded, problemOf } from './api.js'
import { PAGES, type PageEntry } from './pages/pages.js'
import { idsIn, navigate, type PageProps, setParameters, usePlace } from './router.js'
import { SessionContext, useSession } from './session.js'
import { Dialog } from './shared/ask.js'
import { Control } from './shared/fields.js'
import { Go } from './shared/links.js'
import { THEMES, useTheme, useZone, ZONES } from './shared/preferences.js'
import { Badge, Button, Facts, ProblemBox, Says, Title } from './shared/show.js'
import { Text } from './shared/text.js'
import { Toasts, toast } from './shared/toast.js'
import { useQuery } from './shared/use-query.js'
import { SignIn } from './sign-in.js'

export function App() {
  useTheme()
  const { data, problem, reload } = useQuery((signal) => get('/console/session', {}, signal), [])
  if (hasEnded.value) return <SignIn hasEnded={data !== undefined} />
  return (
    <>
      {problem !== null && <ProblemBox problem={problem} retry={reload} />}
      <SessionContext.Provider value={data ?? null}>{data && <Frame />}</SessionContext.Provider>
      <Toasts />
    </>
  )
}

const KEYS = Object.entries({
  '/': 'search for a customer',
  '↓': 'from the search, go to the first customer found',
  '?': 'show this help',
  Esc: 'close a dialog',
})

function Frame() {
  const { path } = usePlace()
  const { address, may } = useSession()
  const [isHelpOpen, setHelpOpen] = useState(false)
  const closeHelp = (): void => setHelpOpen(false)
  const shown = PAGES.filter(({ nav, scope, ofBoth }) => nav !== undefined && may(scope, ofBoth))
  const [first] = shown
  useEffect(() => {
    // Signed in already, by another tab or by a link that was used; or the key does not see the overview.
    const isAtHome = path === '/sign-in' || (path === '/' && !may('admin'))
    if (isAtHome && first !== undefined && first.path !== path) navigate(address(first.path), true)
  })
  useKeys(shown, () => setHelpOpen(true))
  const page = PAGES.find((one) => idsIn(one.path, path) !== null)
  // `/customers/cus_1` belongs to Customers.
  const isCurrent = (of: string): boolean => (of === '/' ? path === '/' : `${path}/`.startsWith(`${of}/`))
  return (
    <>
      <a class="sr-only focus:not-sr-only" href="#main">
        Skip to the content
      </a>
      <header class="flex flex-wrap items-center gap-x-4 gap-y-1 border-b border-line bg-panel px-4 py-1">
        <Go class="font-bold no-underline" to="/" text="Latchkey" />
        <nav class="flex flex-wrap gap-1" aria-label="Pages">
          {shown.map(({ path: to, title }) => (
            <Go
              class="rounded-md px-2 py-1 text-text no-underline hover:bg-plain-back aria-[current]:bg-plain-back"
              to={to}
              text={title}
              aria-current={isCurrent(to) ? 'page' : undefined}
            />
          ))}
        </nav>
        {may('read') && <Search />}
        <Settings openHelp={() => setHelpOpen(true)} />
      </header>
      <main id="main" class="parts mx-auto max-w-304 p-4 outline-none" tabIndex={-1}>
        <Boundary key={path}>
          {page === undefined ? (
            <>
              <Title title="There is no such page" />
              <p>The address may be cut off. Go to the overview, or search for a customer.</p>
            </>
          ) : (
            <Page page={page} ids={idsIn(page.path, path) ?? {}} />
          )}
        </Boundary>
      </main>
      {isHelpOpen && (
        <Dialog title="Keyboard" onClose={closeHelp}>
          <Facts of={[...KEYS, ...shown.map(({ nav, title }) => [`g ${nav}`, `go to ${title}`] as const)]} />
          <Button text="Close" onClick={closeHelp} />
        </Dialog>
      )}
    </>
  )
}

function Page({ page, ids }: PageProps & { readonly page: PageEntry }) {
  const { key, may } = useSession()
  const { data, problem } = useQuery(() => page.load(), [page.path])
  useEffect(() => {
    document.title = `${page.title} · Latchkey`
  }, [page])
  const { title, scope, ofBoth } = page
  const needed = `This page needs a key with the scope ${scope}${ofBoth ? ' for live and sandbox' : ''}.`
  const refused = `${needed} The key ${key} does not have it: sign in with another one.`
  if (!may(scope, ofBoth)) return [<Title key={1} title={title} />, <Says key={2} text={refused} />]
  // A newer version of the console has other files.
  if (problem !== null) throw new Error('This page could not be loaded. Load the console again.')
  return data === undefined ? <Says text="Loading…" /> : <data.Page ids={ids} />
}

function Search() {
  const { address, may } = useSession()
  const { path, parameters } = usePlace()
  const input = useRef<HTMLInputElement>(null)
  const query = parameters.get('query') ?? ''
  useEffect(() => {
    // Not what is being typed: that is ahead of the address.
    if (input.current !== null && input.current !== document.activeElement) input.current.value = query
  }, [query])
  const search = (event: Event): void => {
    event.preventDefault()
    navigate(address('/customers', { query: input.current?.value.trim() }))
  }
  const typed = (event: { readonly currentTarget: HTMLInputElement }): void => {
    if (path === '/customers') setParameters({ query: event.currentTarget.value.trim() }, true)
  }
  const pressed = (event: KeyboardEvent): void => {
    if (event.key !== 'ArrowDown') return
    event.preventDefault()
    document.querySelector<HTMLElement>('#main section a')?.focus()
  }
  return (
    <search class="ml-auto max-w-md flex-[1_1_12rem]">
      <form onSubmit={search}>
        <input
          class="w-full"
          ref={input}
          type="search"
          aria-label="Search customers"
          placeholder={may('write') ? 'Id, reference, email or handle' : 'Id or reference'}
          title="Press / to search"
          defaultValue={query}
          onInput={typed}
          onKeyDown={pressed}
          autocomplete="off"
          maxLength={255}
        />
      </form>
    </search>
  )
}

const COLORS = { name: 'theme', label: 'Colors', options: THEMES }
const TIMES = { name: 'zone', label: 'Times', options: ZONES }

/** Signs out, here and in every other tab. */
async function leave(): Promise<void> {
  const { ok } = await fetch('/console/session', { method: 'DELETE' }).catch(() => ({ ok: false }))
  if (ok) window.location.assign('/console/sign-in')
  else toast('You are still signed in: the daemon did not do it. Try again.', 'bad')
}

function Settings({ openHelp }: { readonly openHelp: () => void }) {
  const { key, environments, environment, defaultEnvironment, version } = useSession()
  const [theme, setTheme] = useTheme()
  const [zone, setZone] = useZone()
  const shown = { name: 'environment', label: 'Environment', options: environments }
  const show = (one: string): void => setParameters({ environment: one === defaultEnvironment ? null : one })
  return (
    <div class="acts [&>label>span]:sr-only">
      {environments.length > 1 && <Control field={shown} value={environment} onChange={show} />}
      {environments.length === 1 && <Badge text={environment} />}
      <details class="relative">
        <summary class="max-w-40 cursor-pointer truncate p-1">
          <Text>{key}</Text>
        </summary>
        <div class="absolute right-0 z-3 grid w-48 gap-2 rounded-lg border border-line bg-panel p-3 shadow-lg">
          <Control field={COLORS} value={theme} onChange={setTheme} />
          <Control field={TIMES} value={zone} onChange={setZone} />
          <Button text="Keyboard" onClick={openHelp} />
          <Button text="Sign out" onClick={() => void leave()} />
          <p class="faint">Latchkey {version}</p>
        </div>
      </details>
    </div>
  )
}

/** `/` searches, `?` helps, and `g` with a letter goes to a page. */
function useKeys(pages: readonly PageEntry[], openHelp: () => void): void {
  const { address } = useSession()
  const isGoing = useRef(false)
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const { target, key } = event
      const isTyping = target instanceof HTMLElement && target.closest('input, select, dialog') !== null
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return
      const page = isGoing.current ? pages.find(({ nav }) => nav === key) : undefined
      isGoing.current = key === 'g'
      if (page !== undefined) navigate(address(page.path))
      else if (key === '?') openHelp()
      else if (key === '/') document.querySelector<HTMLElement>('[type=search]')?.focus()
      else return
      event.preventDefault()
    }
    window.addEventListener('keydown', pressed)
    return () => window.removeEventListener('keydown', pressed)
  })
}

function Boundary({ children }: { readonly children: ComponentChildren }) {
  const [error] = useErrorBoundary()
  return error === undefined ? children : <ProblemBox problem={problemOf(error)} />
}
