import { failedCheck } from '../../failed-check.js'
import type { CheckFinding } from '../../platform.js'
import { type DiscordTarget, targetKey } from '../../target.js'
import type { Inspections } from './inspection.js'
import { Refusal } from './refusal.js'

/** Asks Discord whether the bot is in each guild, with the permission and the place to give each role. */
export function createCheck({ bot, inspectAs }: Inspections) {
  async function checkTarget(
    target: DiscordTarget,
    inspect: ReturnType<Inspections['inspectAs']>,
  ): Promise<CheckFinding> {
    const about = targetKey(target)
    try {
      const { guildName, roleName, problem } = await inspect(target)
      const fine = `The bot may give and take the role ${JSON.stringify(roleName)} in ${JSON.stringify(guildName)}.`
      return { about, isFine: problem === null, message: problem?.message ?? fine }
    } catch (error) {
      return notFine(about, error)
    }
  }

  return async (targets: readonly DiscordTarget[]): Promise<readonly CheckFinding[]> => {
    try {
      const { id, username } = await bot()
      const findings = [
        { about: 'discord', isFine: true, message: `The bot is ${JSON.stringify(username)} (${id}).` },
      ]
      const inspect = inspectAs(id)
      for (const target of targets) findings.push(await checkTarget(target, inspect))
      return findings
    } catch (error) {
      return [notFine('discord', error)]
    }
  }
}

function notFine(about: string, error: unknown): CheckFinding {
  if (error instanceof Refusal) {
    const message = `Discord refused: ${error.message} (${error.status}): see that sync.discord is right.`
    return { about, isFine: false, message }
  }
  return failedCheck(about, error)
}
