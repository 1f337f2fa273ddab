import { hash } from 'node:crypto'
import { ServiceError } from './codes.js'
import type { Delivery, DueKind, Entity, Kind, Records, Settings } from './model.js'
import type { Placed, Span, State, Where } from './state.js'

/**
 * What the rules work on: the records, the clock, ids and chance, of which all but the records follow from the seed.
 * Everything that one act does is written with it, or not at all.
 */
export interface World {
  readonly settings: Settings
  change(settings: Partial<Settings>): void
  readonly now: number
  /** Moves the clock forward; never back. */
  moveTo(instant: number): void
  /** The instant of the next change, later than every one before, so that no two have the same. */
  tick(): number
  makeId(prefix: string): string
  /** A number from 0 to 1 that follows from the seed and the text. */
  draw(text: string): number

  find<K extends Kind>(kind: K, id: string | null): Records[K] | undefined
  put<K extends Kind>(kind: K, record: Records[K]): Records[K]
  remove(id: string): void
  list<K extends Kind>(kind: K, where?: Where, span?: Span): readonly Records[K][]
  /** The same with the place of each, at which a list can go on. */
  placed<K extends Kind>(kind: K, where: Where, span: Span): readonly Placed<Records[K]>[]
  each<K extends Kind>(kind: K): Generator<Records[K]>
  count(kind: Kind, where?: Where): number

  schedule(kind: DueKind, id: string, at: number): void
  unschedule(kind: DueKind, id: string): void
  /** @param place where it comes among those that wait, by the sandbox's time */
  send(delivery: Delivery, place: number): void
}

export interface Acting {
  readonly world: World
  /** Does something whole: a failure takes it back, unless it says that it stays. */
  act<Answer>(work: (world: World) => Answer): Answer
}

/** @param first what the settings are if the state is new */
export function createWorld(state: State, first: Settings): Acting {
  let settings = state.settings() ?? first
  const known = new Map<string, Entity>()
  const unsaved = new Map<string, Kind>()
  /** The oldest first. Endpoints are asked for with every event. */
  let endpoints: readonly Records['endpoint'][] | null = null

  function flush(): void {
    for (const [id, kind] of unsaved) {
      const record = known.get(id)
      if (record !== undefined) state.save(kind, record)
    }
    unsaved.clear()
  }

  const world: World = {
    get settings() {
      return settings
    },
    change(changed) {
      settings = { ...settings, ...changed }
    },
    get now() {
      return settings.now
    },
    moveTo(instant) {
      if (instant > settings.now) settings = { ...settings, now: instant }
    },
    tick() {
      const at = Math.max(settings.now, settings.changedAt + 1)
      settings = { ...settings, now: at, changedAt: at }
      return at
    },
    makeId(prefix) {
      settings = { ...settings, made: settings.made + 1 }
      return `${prefix}_${digest(settings.seed, `${prefix} ${settings.made}`).slice(0, 24)}`
    },
    draw: (text) => Number.parseInt(digest(settings.seed, text).slice(0, 12), 16) / 2 ** 48,

    find<K extends Kind>(kind: K, id: string | null) {
      if (id === null) return undefined
      const record = (known.get(id) as Records[K] | undefined) ?? state.find(kind, id)
      if (record !== undefined) known.set(id, record)
      return record
    },
    put(kind, record) {
      known.set(record.id, record)
      unsaved.set(record.id, kind)
      if (kind === 'endpoint') endpoints = null
      return record
    },
    remove(id) {
      flush()
      known.delete(id)
      state.remove(id)
    },
    list(kind, where = {}, span = {}) {
      if (kind === 'endpoint') {
        endpoints ??= this.placed('endpoint', {}, {})
          .map(({ item }) => item)
          .reverse()
        return endpoints as readonly Entity[] as readonly Records[typeof kind][]
      }
      return this.placed(kind, where, span).map(({ item }) => item)
    },
    placed(kind, where, span) {
      flush()
      return state.list(kind, where, span)
    },
    each(kind) {
      flush()
      return state.each(kind)
    },
    count(kind, where = {}) {
      flush()
      return state.count(kind, where)
    },

    schedule(kind, id, at) {
      settings = { ...settings, made: settings.made + 1 }
      state.schedule({ kind, id, at }, settings.made)
    },
    unschedule: (kind, id) => state.unschedule(kind, id),
    send: (delivery, place) => state.addDelivery(delivery, place),
  }

  function act<Answer>(work: (world: World) => Answer): Answer {
    const before = settings
    const commit = (): void => {
      flush()
      if (settings !== before) state.saveSettings(settings)
      state.transaction('commit')
    }
    state.transaction('begin immediate')
    try {
      const answer = work(world)
      commit()
      return answer
    } catch (error) {
      if (error instanceof ServiceError && error.keepsChanges) {
        commit()
      } else {
        state.transaction('rollback')
        settings = before
        endpoints = null
      }
      throw error
    } finally {
      known.clear()
      unsaved.clear()
    }
  }
  return { world, act }
}

function digest(seed: number, text: string): string {
  return hash('sha256', `${seed}\0${text}`)
}
