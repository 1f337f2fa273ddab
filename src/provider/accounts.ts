interface PlatformForm {
  /** For people. */
  readonly title: string
  /** The detail of a customer that holds their account on it; the option of commands is its name without `Id`. */
  readonly account: `${string}Id`
  /** The detail with the account's name, which nothing depends on. */
  readonly username: string
  /** The form of an account's id, as a pattern and in words. */
  readonly id: RegExp
  readonly idForm: string
}

/**
 * Every platform with roles or groups that can follow access, by its name in the config. To add one, begin here: what
 * else it needs are entries of tables by its name, without which nothing compiles.
 */
export const PLATFORMS = {
  discord: {
    title: 'Discord',
    account: 'communityId',
    username: 'communityUsername',
    // 64-bit numbers.
    id: /^[1-9]\d{0,19}$/,
    idForm: 'a whole number above 0',
  },
  telegram: {
    title: 'Telegram',
    account: 'messengerId',
    username: 'messengerUsername',
    // Below 2^52. The ids of groups are negative.
    id: /^[1-9]\d{0,15}$/,
    idForm: 'a whole number above 0',
  },
} as const satisfies Readonly<Record<string, PlatformForm>>

export type PlatformName = keyof typeof PLATFORMS
type Form = (typeof PLATFORMS)[PlatformName]

export const PLATFORM_NAMES = Object.keys(PLATFORMS) as readonly PlatformName[]

/** The detail of a customer that holds an account. */
export type AccountFact = Form['account']
export const ACCOUNT_FACTS: readonly AccountFact[] = PLATFORM_NAMES.map((name) => PLATFORMS[name].account)

/** Everything that events say of accounts. */
export type AccountDetail = AccountFact | Form['username']

/** Every detail of a person, in the order in which events are stored. */
export const DETAIL_NAMES: readonly ('email' | 'name' | AccountDetail)[] = [
  'email',
  'name',
  ...PLATFORM_NAMES.flatMap((name) => [PLATFORMS[name].account, PLATFORMS[name].username]),
]
/** The details that customers are found by. */
export const LOOKUP_NAMES: readonly ('email' | AccountFact)[] = ['email', ...ACCOUNT_FACTS]
/** The details whose beginning is enough to find a customer. */
export const SEARCH_NAMES: readonly ('email' | AccountDetail)[] = [
  ...LOOKUP_NAMES,
  ...PLATFORM_NAMES.map((name) => PLATFORMS[name].username),
]

/** Accounts of a customer, at most one on each platform. */
export type Accounts = Readonly<Partial<Record<AccountFact, string>>>

/** A record with a value for each of these names, in their order. */
export function ofEach<Name extends string, Value>(
  names: readonly Name[],
  make: (name: Name) => Value,
): Record<Name, Value> {
  return Object.fromEntries(names.map((name) => [name, make(name)])) as Record<Name, Value>
}
