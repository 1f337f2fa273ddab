/* The frame around every page: who is signed in, where one can go, and what went wrong. */

import { Component, type ComponentChildren, type ComponentType } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { answerOf, api, onSessionEnd, signOut } from './api.js'
import { PAGES, type PageEntry, type PageProps } from './pages/pages.js'
import { idsIn, Link, navigate, type Place, setParameters, usePlace } from './router.js'
import { environmentIn, SessionContext, type SignedIn, useAddress, useSession } from './session.js'
import { Dialog } from './shared/confirm.js'
import { useTheme, useZone } from './shared/preferences.js'
import { Badge, Empty, Loading, ProblemBox } from './shared/show.js'
import { Text } from './shared/text.js'
import { Toasts, toast } from './shared/toast.js'
import { problemOf, useQuery } from './shared/use-query.js'
import { SignIn } from './sign-in.js'

export function App() {
  useTheme()
  const place = usePlace()
  const session = useQuery<SignedIn | 'nobody'>(
    (signal) =>
      answerOf(api.GET('/console/session', { signal })).catch((error: unknown) => {
        if (problemOf(error).code === 'session_ended') return 'nobody' as const
        throw error
      }),
    [],
  )
  const [hasEnded, setEnded] = useState(false)
  useEffect(() => onSessionEnd(() => setEnded(true)), [])
  const { data, problem, isLoading, reload } = session

  const content = () => {
    if (data === undefined) {
      if (isLoading || problem === null) return <Loading />
      return <ProblemBox problem={problem} retry={reload} />
    }
    if (data === 'nobody' || hasEnded)
      return <SignIn place={place} hasEnded={hasEnded && data !== 'nobody'} />
    return (
      <SessionContext.Provider value={data}>
        <Frame place={place} />
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

const isFor = ({ scopes }: PageEntry, own: SignedIn): boolean =>
  scopes.some((one) => own.scopes.includes(one))

function Frame({ place }: { readonly place: Place }) {
  const session = useSession()
  const address = useAddress()
  const [isHelpOpen, setHelpOpen] = useState(false)
  // Signed in already: by another tab, or once more by a link that was used.
  useEffect(() => {
    if (place.path === '/sign-in') navigate(address('/'), true)
  })
  const shown = PAGES.filter((page) => page.nav !== undefined && isFor(page, session))
  const search = useRef<HTMLInputElement>(null)
  useKeys(shown, search, () => setHelpOpen(true))
  const found = PAGES.flatMap((page) => {
    const ids = idsIn(page.path, place.path)
    return ids === null ? [] : [{ page, ids }]
  })[0]
  // `/customers/cus_1` belongs to Customers.
  const isCurrent = ({ path }: PageEntry): boolean =>
    path === '/' ? place.path === '/' : `${place.path}/`.startsWith(`${path}/`)

  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top">
        <Link class="brand" to={address('/')}>
          Latchkey
        </Link>
        <nav aria-label="Pages">
          {shown.map((page) => (
            <Link
              key={page.path}
              to={address(page.path)}
              {...(isCurrent(page) && { 'aria-current': 'page' })}
            >
              {page.title}
            </Link>
          ))}
        </nav>
        {session.may('read') && <Search input={search} />}
        <Settings openHelp={() => setHelpOpen(true)} />
      </header>
      <main id="main" tabIndex={-1}>
        <Boundary key={place.path}>{found === undefined ? <NotFound /> : <Page {...found} />}</Boundary>
      </main>
      {isHelpOpen && <Help pages={shown} onClose={() => setHelpOpen(false)} />}
    </>
  )
}

function Page({ page, ids }: { readonly page: PageEntry; readonly ids: PageProps['ids'] }) {
  const session = useSession()
  const [loaded, setLoaded] = useState<{
    readonly page: PageEntry
    readonly Shown: ComponentType<PageProps>
  } | null>(null)
  const [problem, setProblem] = useState<unknown>(null)
  useEffect(() => {
    document.title = `${page.title} · Latchkey`
    page.load().then((Shown) => setLoaded({ page, Shown }), setProblem)
  }, [page])
  if (!isFor(page, session)) {
    return (
      <Empty>
        <p>
          This page needs a key with the scope {page.scopes.join(' or ')}. The key <Text>{session.key}</Text>{' '}
          does not have it: sign in with another one.
        </p>
      </Empty>
    )
  }
  // A newer version of the console has other files.
  if (problem !== null) throw new Error('This page could not be loaded. Load the console again.')
  return loaded?.page === page ? <loaded.Shown ids={ids} /> : <Loading />
}

function NotFound() {
  const address = useAddress()
  return (
    <Empty>
      <h1>There is no such page</h1>
      <p>
        The address may be cut off. Go to the <Link to={address('/')}>overview</Link>, or search for a
        customer.
      </p>
    </Empty>
  )
}

function Search({ input }: { readonly input: { current: HTMLInputElement | null } }) {
  const address = useAddress()
  const { may } = useSession()
  const { parameters } = usePlace()
  return (
    <search>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          const query = input.current?.value.trim() ?? ''
          if (query !== '') navigate(address('/customers', { query }))
        }}
      >
        <input
          ref={input}
          type="search"
          aria-label="Search customers"
          placeholder={may('write') ? 'Id, reference, email or handle' : 'Id or reference'}
          title="Press / to search"
          defaultValue={parameters.get('query') ?? ''}
          autocomplete="off"
          maxLength={255}
        />
      </form>
    </search>
  )
}

function Settings({ openHelp }: { readonly openHelp: () => void }) {
  const { key, environments, environment, version } = useSession()
  const [theme, setTheme] = useTheme()
  const [zone, setZone] = useZone()
  return (
    <div class="settings">
      {environments.length > 1 ? (
        <select
          aria-label="Environment"
          class={`environment ${environment}`}
          value={environment}
          onChange={({ currentTarget }) => {
            const { value } = currentTarget
            const chosen = environments.find((one) => one === value) ?? environment
            const isDefault = chosen === environmentIn(new URLSearchParams(), environments)
            setParameters({ environment: isDefault ? null : chosen, cursor: null })
          }}
        >
          {environments.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      ) : (
        <Badge tone={environment === 'live' ? 'plain' : 'warn'}>{environment}</Badge>
      )}
      <details class="menu">
        <summary>
          <Text>{key}</Text>
        </summary>
        <div>
          <label class="field">
            <span>Colors</span>
            <select
              value={theme}
              onChange={({ currentTarget: { value } }) =>
                setTheme(value === 'light' || value === 'dark' ? value : 'system')
              }
            >
              <option value="system">as the system</option>
              <option value="light">light</option>
              <option value="dark">dark</option>
            </select>
          </label>
          <label class="field">
            <span>Times</span>
            <select
              value={zone}
              onChange={({ currentTarget: { value } }) => setZone(value === 'utc' ? 'utc' : 'local')}
            >
              <option value="local">in your zone</option>
              <option value="utc">in UTC</option>
            </select>
          </label>
          <button type="button" onClick={openHelp}>
            Keyboard
          </button>
          <button
            type="button"
            onClick={() =>
              void signOut().then(
                () => window.location.assign('/console/sign-in'),
                () => toast('You are still signed in: the daemon did not do it. Try again.', 'bad'),
              )
            }
          >
            Sign out
          </button>
          <p class="faint">Latchkey {version}</p>
        </div>
      </details>
    </div>
  )
}

/** `/` searches, `?` helps, and `g` with a letter goes to a page. */
function useKeys(
  pages: readonly PageEntry[],
  search: { readonly current: HTMLInputElement | null },
  openHelp: () => void,
): void {
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
  const keys: readonly (readonly [string, string])[] = [
    ['/', 'search for a customer'],
    ['?', 'show this help'],
    ['Esc', 'close a dialog'],
    ...pages.map(({ nav, title }) => [`g ${nav}`, `go to ${title}`] as const),
  ]
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <dl class="facts">
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <footer>
        <button type="button" class="primary" onClick={onClose}>
          Close
        </button>
      </footer>
    </Dialog>
  )
}

/** Shows a bug instead of an empty page. */
class Boundary extends Component<{ readonly children: ComponentChildren }, { readonly error: unknown }> {
  override state = { error: null }

  override componentDidCatch(error: unknown): void {
    this.setState({ error })
  }

  override render() {
    const { error } = this.state
    return error === null ? this.props.children : <ProblemBox problem={problemOf(error)} />
  }
}
