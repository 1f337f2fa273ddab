/* Examples of the requests that apps make most. A test holds each against its schema. */

interface Example {
  readonly body?: unknown
  readonly answer?: unknown
}

const SINCE = '2026-02-01T09:30:00.000Z'
const NEVER = { active: false, status: 'none', since: null, until: null }
const ACTIVE = { active: true, status: 'active', since: SINCE, until: null }

const ENTITLEMENT = {
  productId: 'pro_1',
  ...ACTIVE,
  pastDue: false,
  sources: [
    {
      id: 'sub_1',
      kind: 'subscription',
      active: true,
      since: SINCE,
      until: null,
      rail: 'card',
      pastDue: false,
      cancelAtPeriodEnd: false,
      periodEnd: '2026-03-03T09:30:00.000Z',
      reason: null,
      eventId: 'evt_1',
    },
  ],
}

const ABOUT_CUSTOMER = {
  customerId: 'cus_1',
  environment: 'live',
  asOf: '2026-03-01T12:00:00.000Z',
  validUntil: null,
  cursor: '8d1f0c2a97b3.17',
}

const FEATURE = { id: 'export', active: true, until: null, productIds: ['pro_1'] }
const ACCESS = { ...ABOUT_CUSTOMER, entitlements: [ENTITLEMENT], features: [FEATURE] }
const LAST_PAGE = { nextCursor: null, hasMore: false }

/** By operation. */
export const EXAMPLES: Readonly<Record<string, Example>> = {
  receiveEvent: {
    body: {
      id: 'evt_1',
      type: 'payment.authorized',
      createdAt: SINCE,
      data: {
        object: 'payment',
        id: 'pay_1',
        method: 'CARD',
        customer: { id: 'cus_1' },
        product: { id: 'pro_1' },
      },
    },
    answer: { received: true, id: 'evt_1', disposition: 'applied' },
  },
  getEntitlements: { answer: ACCESS },
  getEntitlement: { answer: { ...ABOUT_CUSTOMER, ...ENTITLEMENT } },
  getFeature: { answer: { ...ABOUT_CUSTOMER, ...FEATURE } },
  findEntitlements: { answer: { items: [ACCESS], pagination: LAST_PAGE } },
  lookUpEntitlements: {
    body: { email: 'ada@example.com' },
    answer: { items: [ACCESS], pagination: LAST_PAGE },
  },
  checkEntitlements: {
    body: {
      checks: [
        { customerId: 'cus_1', productId: 'pro_1' },
        { externalRef: 'user-17', feature: 'export' },
      ],
    },
    answer: {
      results: [
        { customerId: 'cus_1', productId: 'pro_1', active: true, until: null },
        { customerId: null, feature: 'export', active: false, until: null },
      ],
    },
  },
  listChanges: {
    answer: {
      items: [
        {
          cursor: '8d1f0c2a97b3.1',
          at: '2026-02-01T09:30:00.120Z',
          environment: 'live',
          customerId: 'cus_1',
          productId: 'pro_1',
          before: NEVER,
          after: ACTIVE,
          features: ['export'],
          cause: { kind: 'event', eventId: 'evt_1' },
        },
      ],
      pagination: { nextCursor: '8d1f0c2a97b3.1', hasMore: true },
    },
  },
  grantProduct: {
    body: { productId: 'pro_1', until: '2027-03-31T00:00:00Z', reason: 'support case 17' },
    answer: { eventId: 'man_1', ...ACCESS },
  },
  blockCustomer: { body: { reason: 'chargeback under review' } },
  linkAccounts: { body: { communityId: '80351110224678912' } },
  startReplay: { body: { filter: { disposition: 'quarantined' }, dryRun: true } },
}
