/* Discord and Telegram, with the people and the staff of the merchant's communities. */

import { accountId, BOT_TOKEN, GOLD_ROLE_ID, SILVER_ROLE_ID } from '../../platforms/discord-ids.js'
import type { AuditEntry } from '../../platforms/discord-routes.js'
import { type DiscordState, type LocalDiscord, startDiscord } from '../../platforms/discord-server.js'
import type { LocalGroup } from '../../platforms/telegram-group.js'
import {
  type LocalTelegram,
  startTelegram,
  BOT_TOKEN as TELEGRAM_TOKEN,
} from '../../platforms/telegram-server.js'
import type { AtEnd } from '../../world.js'
import type { Chance } from '../machine/chance.js'
import { createProcess, runAs } from '../machine/processes.js'
import { elapsed, lasting } from '../machine/time.js'
import { trace } from '../machine/trace.js'

export const TOKENS = { discord: BOT_TOKEN, telegram: TELEGRAM_TOKEN } as const
export const GROUP_ID = -1_001_234
export const ROLES = { gold: GOLD_ROLE_ID, silver: SILVER_ROLE_ID } as const

/** Everyone with an account on both. Those from `OUTSIDERS` on are no customers of the merchant. */
export const PEOPLE = 12
export const OUTSIDERS = 9
export const communityIdOf = (person: number): string => accountId(person)
export const messengerIdOf = (person: number): number => 5_000 + person

export interface OneTimeLinks {
  /** Each time that one was followed, whose the account is to be. */
  followed: { readonly messengerId: number; readonly customerId: string }[]
  /** Whether Telegram was in trouble meanwhile: what it was sent may be lost. */
  isTroubled: boolean
  /** How many messages the bot had sent before. */
  sentBefore: number
}

/** What the bot has changed, and when it asked for it, in milliseconds since the world began. */
interface RoleChange extends AuditEntry {
  readonly at: number
  readonly askedAt: number
}

export interface Communities {
  readonly discord: LocalDiscord
  readonly telegram: LocalTelegram
  readonly group: LocalGroup
  /** Whom staff let in who never was a customer, and has not left since: `gold 10`, `group 11`. */
  readonly guests: ReadonlySet<string>
  /** Whom staff let in who may be a customer: whether Latchkey takes it away depends on who came first. */
  readonly touched: ReadonlySet<string>
  readonly changes: readonly RoleChange[]
  /** Whether Discord did not do at once what it was asked for, at any moment between two. */
  wasTroubled(from: number, to: number): boolean
  /** What came of one-time links to the bot since all was quiet. */
  readonly links: OneTimeLinks
  /** Something that people, staff or the platforms do. */
  act(chance: Chance): void
  follow(token: string, person: number, customerId: string): void
  recover(): Promise<void>
}

export async function startCommunities(atEnd: AtEnd): Promise<Communities> {
  const changes: RoleChange[] = []
  const onEntry = (entry: AuditEntry, askedAt: number): void => {
    const at = elapsed()
    changes.push({ ...entry, at, askedAt: at - (Date.now() - askedAt) })
  }
  const discordOwner = createProcess('discord')
  const discord = await (runAs(discordOwner, () => startDiscord({ atEnd, onEntry })) as Promise<LocalDiscord>)
  const telegram = await (runAs(createProcess('telegram'), () =>
    startTelegram(atEnd),
  ) as Promise<LocalTelegram>)
  const group = telegram.addGroup(GROUP_ID)
  const { guild } = discord
  const guests = new Set<string>()
  const touched = new Set<string>()
  const links: OneTimeLinks = { followed: [], isTroubled: false, sentBefore: 0 }
  for (let person = 0; person < PEOPLE; person += 1) guild.join(communityIdOf(person))

  const roleNames = ['gold', 'silver'] as const
  const staff: Readonly<Record<string, (chance: Chance, person: number) => void>> = {
    'gives a role': (chance, person) => {
      const role = chance.pick(roleNames)
      if (!guild.isMember(communityIdOf(person))) return
      guild.give(communityIdOf(person), ROLES[role])
      ;(person >= OUTSIDERS ? guests : touched).add(`${role} ${person}`)
    },
    'takes a role': (chance, person) => {
      const role = chance.pick(roleNames)
      guild.take(communityIdOf(person), ROLES[role])
      guests.delete(`${role} ${person}`)
    },
    'adds to the group': (_, person) => {
      const user = messengerIdOf(person)
      if (group.members().includes(user)) return
      group.addByStaff(user)
      ;(person >= OUTSIDERS ? guests : touched).add(`group ${person}`)
    },
    'removes from the group': (_, person) => {
      if (!group.members().includes(messengerIdOf(person))) return
      group.setStatus(messengerIdOf(person), 'left')
      guests.delete(`group ${person}`)
    },
  }
  const members: typeof staff = {
    'leaves the guild': (_, person) => {
      guild.leave(communityIdOf(person))
      for (const role of roleNames) guests.delete(`${role} ${person}`)
    },
    'joins the guild': (_, person) => guild.join(communityIdOf(person)),
    'asks to join the group': (chance, somebody) => {
      const user = messengerIdOf(somebody % OUTSIDERS)
      if (group.members().includes(user) || group.statusOf(user) === 'kicked') return
      const links = [...group.links.values()].filter(
        (link) => !link.is_revoked && (link.expire_date ?? 0) * 1_000 > Date.now(),
      )
      group.askToJoin(user, links.length > 0 && chance.is(0.7) ? chance.pick(links).invite_link : undefined)
    },
    'leaves the group': staff['removes from the group'] as (chance: Chance, person: number) => void,
  }
  const troubles: { readonly from: number; to: number }[] = []
  /** The newest outage, which is over if `to` is past. */
  let outage = { from: 0, to: 0 }
  function setState(state: DiscordState): Promise<void> {
    outage.to = Math.min(outage.to, elapsed())
    outage = { from: elapsed(), to: state === 'up' ? elapsed() : Number.POSITIVE_INFINITY }
    troubles.push(outage)
    return discord.setState(state)
  }
  const outages: typeof staff = {
    'discord fails': (chance) =>
      void setState(chance.pick(['hang', 'hang-in-body', 'lose-answers', 'lose-answers', { status: 502 }])),
    'discord is slow': (chance) => void setState({ slowMs: chance.below(lasting(20_000)) }),
    'discord is unreachable': () => void setState('refuse'),
    'discord limits': (chance) => {
      const scope = chance.pick(['user', 'shared', 'global', 'network'] as const)
      const seconds = 1 + chance.below(lasting(120_000) / 1_000)
      troubles.push({ from: elapsed(), to: elapsed() + seconds * 1_000 })
      discord.limit({ scope, seconds })
    },
    'telegram is down': () => {
      telegram.isDown = true
    },
    'telegram limits': (chance) => telegram.limit(1 + chance.below(lasting(120_000) / 1_000)),
    'telegram loses answers': (chance) =>
      telegram.fail({ answer: chance.pick(['close', 'foreign']), times: 1 + chance.below(4), isDone: true }),
    'platforms recover': () => void recover(),
  }
  const acts = Object.entries({ ...staff, ...members, ...outages })

  async function recover(): Promise<void> {
    telegram.isDown = false
    await setState('up')
  }

  return {
    discord,
    telegram,
    group,
    guests,
    touched,
    changes,
    wasTroubled: (from, to) => troubles.some((one) => one.from <= to && one.to >= from),
    links,
    act(chance) {
      const [name, act] = chance.pick(acts)
      trace(`community ${name}`)
      runAs(discordOwner, () => act(chance, chance.below(PEOPLE)))
      links.isTroubled ||= name.startsWith('telegram')
    },
    follow(token, person, customerId) {
      const messengerId = messengerIdOf(person)
      trace(`${messengerId} follows a link of ${customerId}`)
      links.followed.push({ messengerId, customerId })
      runAs(discordOwner, () => telegram.say(messengerId, `/start ${token}`))
    },
    recover,
  }
}
