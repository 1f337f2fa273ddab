/* The frame around every page: who is signed in, where one can go, and what went wrong. */

import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useErrorBoundary, useRef, useState } from 'preact/hooks'
import { answerOf, api, hasEnded, signOut } from './api.js'
import { PAGES, type PageEntry } from './pages/pages.js'
import { idsIn, Link, navigate, type PageProps, setParameters, usePlace } from './router.js'
import { SessionContext, type SignedIn, useAddress, useSession } from './session.js'
import { Dialog } from './shared/confirm.js'
import { Select } from './shared/filters.js'
import { Button } from './shared/page.js'
import { useTheme, useZone } from './shared/preferences.js'
import { Badge, Empty, Facts, Loading, ProblemBox } from './shared/show.js'
import { Text } from './shared/text.js'
import { Toasts, toast } from './shared/toast.js'
import { problemOf, useQuery } from './shared/use-query.js'
import { SignIn } from './sign-in.js'

export function App() {
  useTheme()
  const { data, problem, reload } = useQuery<SignedIn | 'nobody'>(
    (signal) =>
      answerOf(api.GET('/console/session', { signal })).catch((error: unknown) => {
        if (problemOf(error).code === 'session_ended') return 'nobody'
        throw error
      }),
    [],
  )
  const content = () => {
    if (data === undefined)
      return problem === null ? <Loading /> : <ProblemBox problem={problem} retry={reload} />
    if (data === 'nobody' || hasEnded.value) return <SignIn hasEnded={data !== 'nobody'} />
    return (
      <SessionContext.Provider value={data}>
        <Frame />
      </SessionContext.Provider>
    )
  }
  return (
    <>
      {content()}
      <Toasts />
    </>
  )
}

const isFor = ({ scope }: PageEntry, own: SignedIn): boolean => scope === null || own.scopes.includes(scope)

function Frame() {
  const { path } = usePlace()
  const session = useSession()
  const address = useAddress()
  const [isHelpOpen, setHelpOpen] = useState(false)
  // Signed in already: by another tab, or once more by a link that was used.
  useEffect(() => {
    if (path === '/sign-in') navigate(address('/'), true)
  })
  const shown = PAGES.filter((page) => page.nav !== null && isFor(page, session))
  const search = useRef<HTMLInputElement>(null)
  useKeys(shown, search, () => setHelpOpen(true))
  const page = PAGES.find((one) => idsIn(one.path, path) !== null)
  // `/customers/cus_1` belongs to Customers.
  const isCurrent = (of: string): boolean => (of === '/' ? path === '/' : `${path}/`.startsWith(`${of}/`))

  return (
    <>
      <a class="sr-only focus:not-sr-only" href="#main">
        Skip to the content
      </a>
      <header class="flex flex-wrap items-center gap-x-4 gap-y-1 border-b border-line bg-panel px-4 py-1">
        <Link class="font-bold no-underline" to={address('/')}>
          Latchkey
        </Link>
        <nav class="flex flex-wrap gap-1" aria-label="Pages">
          {shown.map(({ path: to, title }) => (
            <Link
              class="rounded-md px-2 py-1 text-text no-underline hover:bg-plain-back aria-[current]:bg-plain-back"
              to={address(to)}
              aria-current={isCurrent(to) ? 'page' : undefined}
            >
              {title}
            </Link>
          ))}
        </nav>
        {session.may('read') && <Search input={search} />}
        <Settings openHelp={() => setHelpOpen(true)} />
      </header>
      <main id="main" tabIndex={-1}>
        <Boundary key={path}>
          {page === undefined && (
            <Empty>
              <h1>There is no such page</h1>
              <p>The address may be cut off. Go to the overview, or search for a customer.</p>
            </Empty>
          )}
          {page !== undefined && <Page page={page} ids={idsIn(page.path, path) ?? {}} />}
        </Boundary>
      </main>
      {isHelpOpen && <Help pages={shown} onClose={() => setHelpOpen(false)} />}
    </>
  )
}

function Page({ page, ids }: PageProps & { readonly page: PageEntry }) {
  const session = useSession()
  const { data, problem } = useQuery(async () => ({ Shown: await page.load() }), [page.path])
  useEffect(() => {
    document.title = `${page.title} · Latchkey`
  }, [page])
  if (!isFor(page, session)) {
    return (
      <Empty>
        <p>
          This page needs a key with the scope {page.scope}. The key <Text>{session.key}</Text> does not have
          it: sign in with another one.
        </p>
      </Empty>
    )
  }
  // A newer version of the console has other files.
  if (problem !== null) throw new Error('This page could not be loaded. Load the console again.')
  return data === undefined ? <Loading /> : <data.Shown ids={ids} />
}

type SearchInput = RefObject<HTMLInputElement | null>

function Search({ input }: { readonly input: SearchInput }) {
  const address = useAddress()
  const { may } = useSession()
  const { path, parameters } = usePlace()
  const query = parameters.get('query') ?? ''
  useEffect(() => {
    // Not what is being typed: that is ahead of the address.
    if (input.current !== null && input.current !== document.activeElement) input.current.value = query
  }, [query])
  const search = (event: Event): void => {
    event.preventDefault()
    const typed = input.current?.value.trim() ?? ''
    if (typed !== '') navigate(address('/customers', { query: typed }))
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
          onInput={({ currentTarget: { value } }) => {
            if (path === '/customers') setParameters({ query: value.trim() }, true)
          }}
          onKeyDown={(event) => {
            if (event.key !== 'ArrowDown') return
            event.preventDefault()
            document.querySelector<HTMLElement>('#main a')?.focus()
          }}
          autocomplete="off"
          maxLength={255}
        />
      </form>
    </search>
  )
}

const THEMES = [['system', 'as the system'], 'light', 'dark'] as const
const ZONES = [
  ['local', 'in your zone'],
  ['utc', 'in UTC'],
] as const

function Settings({ openHelp }: { readonly openHelp: () => void }) {
  const { key, environments, environment, defaultEnvironment, version } = useSession()
  const [theme, setTheme] = useTheme()
  const [zone, setZone] = useZone()
  const leave = (): Promise<void> =>
    signOut().then(
      () => window.location.assign('/console/sign-in'),
      () => toast('You are still signed in: the daemon did not do it. Try again.', 'bad'),
    )
  return (
    <div class="flex items-center gap-2">
      {environments.length === 1 && (
        <Badge tone={environment === 'live' ? 'plain' : 'warn'}>{environment}</Badge>
      )}
      {environments.length > 1 && (
        <Select
          label="Environment"
          look="choice"
          options={environments}
          value={environment}
          onChange={(one) =>
            setParameters({ environment: one === defaultEnvironment ? null : one, cursor: null })
          }
        />
      )}
      <details class="relative">
        <summary class="max-w-40 cursor-pointer truncate p-1">
          <Text>{key}</Text>
        </summary>
        <div class="absolute right-0 z-3 grid w-48 gap-2 rounded-lg border border-line bg-panel p-3 shadow-lg">
          <Select label="Colors" options={THEMES} value={theme} onChange={setTheme} />
          <Select label="Times" options={ZONES} value={zone} onChange={setZone} />
          <Button text="Keyboard" onClick={openHelp} />
          <Button text="Sign out" onClick={() => void leave()} />
          <p class="faint">Latchkey {version}</p>
        </div>
      </details>
    </div>
  )
}

/** `/` searches, `?` helps, and `g` with a letter goes to a page. */
function useKeys(pages: readonly PageEntry[], search: SearchInput, openHelp: () => void): void {
  const address = useAddress()
  const isGoing = useRef(false)
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const { target, key } = event
      const isTyping =
        target instanceof HTMLElement && target.closest('input, textarea, select, dialog') !== null
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return
      const page = isGoing.current ? pages.find(({ nav }) => nav === key) : undefined
      isGoing.current = key === 'g'
      if (page !== undefined) navigate(address(page.path))
      else if (key === '?') openHelp()
      else if (key === '/') search.current?.focus()
      else return
      event.preventDefault()
    }
    window.addEventListener('keydown', pressed)
    return () => window.removeEventListener('keydown', pressed)
  })
}

function Help({ pages, onClose }: { readonly pages: readonly PageEntry[]; readonly onClose: () => void }) {
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <Facts
        of={[
          ['/', 'search for a customer'],
          ['↓', 'from the search, go to the first customer found'],
          ['?', 'show this help'],
          ['Esc', 'close a dialog'],
          ...pages.map(({ nav, title }) => [`g ${nav}`, `go to ${title}`] as const),
        ]}
      />
      <footer>
        <Button text="Close" onClick={onClose} />
      </footer>
    </Dialog>
  )
}

/** Shows a bug instead of an empty page. */
function Boundary({ children }: { readonly children: ComponentChildren }) {
  const [error] = useErrorBoundary()
  return error === undefined ? children : <ProblemBox problem={problemOf(error)} />
}
