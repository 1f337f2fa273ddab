import type { Config } from '../../config/types.js'
import type { Issue } from '../../errors.js'
import { issueLine } from '../failure.js'
import { type Finding, ok, warn } from './finding.js'

/** What is allowed in the config and seldom meant; a config with a problem has ended the command before. */
export function checkConfig({ path }: Config, warnings: readonly Issue[]): readonly Finding[] {
  return [ok('config', path), ...warnings.map((issue) => warn('config', issueLine(issue), null))]
}

/** Roles and groups. */
export function checkTargets({ products }: Config): readonly Finding[] {
  return products.some(({ targets }) => targets.length > 0) ? [] : [ok('sync', 'no targets configured')]
}
