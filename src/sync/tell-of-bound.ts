import type { Logger } from 'pino'
import type { TargetRef } from '../store/memberships.js'

/** Says once that removals from a target wait for an operator, and again only when that had ended. */
export function createTellOfBound(log: Logger): (target: TargetRef, isHeld: boolean) => void {
  const held = new Set<string>()
  return ({ environment, target }, isHeld) => {
    const name = `${environment} ${target}`
    if (!isHeld) held.delete(name)
    else if (!held.has(name)) {
      held.add(name)
      log.warn(
        { environment, target },
        'more removals than the bound allows wait for an operator: see `latchkey sync plan`',
      )
    }
  }
}
