import { events } from './0001-events.js'
import { entitlements } from './0002-entitlements.js'
import { customers } from './0003-customers.js'
import { manualEvents } from './0004-manual-events.js'
import { memberships } from './0005-memberships.js'
import { erasures } from './0006-erasures.js'
import { joinLinks } from './0007-join-links.js'
import { messages } from './0008-messages.js'
import { deliveryPace } from './0009-delivery-pace.js'
import { changeQuestions } from './0010-change-questions.js'
import { rulesVersion } from './0011-rules-version.js'
import { backfills } from './0012-backfills.js'
import { askedRecords } from './0013-asked-records.js'
import { userNames } from './0014-user-names.js'
import { longLookups } from './0015-long-lookups.js'
import { writersSideBySide } from './0016-writers-side-by-side.js'
import type { NamedMigration } from './column-types.js'

/** Every step of the schema, oldest first. Append only. */
export const MIGRATIONS: readonly NamedMigration[] = [
  { name: '0001-events', create: events },
  { name: '0002-entitlements', create: entitlements },
  { name: '0003-customers', create: customers },
  { name: '0004-manual-events', create: manualEvents },
  { name: '0005-memberships', create: memberships },
  { name: '0006-erasures', create: erasures },
  { name: '0007-join-links', create: joinLinks },
  { name: '0008-messages', create: messages },
  { name: '0009-delivery-pace', create: deliveryPace },
  { name: '0010-change-questions', create: changeQuestions },
  { name: '0011-rules-version', create: rulesVersion },
  { name: '0012-backfills', create: backfills },
  { name: '0013-asked-records', create: askedRecords },
  { name: '0014-user-names', create: userNames },
  { name: '0015-long-lookups', create: longLookups },
  { name: '0016-writers-side-by-side', create: writersSideBySide },
]
