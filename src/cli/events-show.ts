import type { Command } from 'commander'
import { LatchkeyError } from '../errors.js'
import { eventDetailJson } from '../handlers/event-json.js'
import type { Environment } from '../provider/event.js'
import {
  defaultEnvironment,
  environmentOption,
  jsonLine,
  loadNamedConfig,
  otherThan,
  parseId,
  type SharedOptions,
  withSharedOptions,
} from './command.js'
import { commandGroup } from './command-groups.js'
import type { CliContext } from './context.js'
import { eventText } from './event-text.js'

interface EventsShowOptions extends SharedOptions {
  readonly environment?: Environment
}

/** `latchkey events show`: everything that is known of one stored event but its bytes. */
export function eventsShowCommand(program: Command, context: CliContext): void {
  const command = commandGroup(program, 'events').command('show')
  withSharedOptions(command, 'events show evt_1')
    .description('show what one stored event says, and what became of it')
    .argument('<event>', 'the event id', parseId)
    .addOption(environmentOption())
    .action(async (eventId: string, options: EventsShowOptions) => {
      const { readEvent } = await import('./read-events.js')
      const { config } = await loadNamedConfig(options, context)
      const environment = options.environment ?? defaultEnvironment(config.endpoints)
      const event = await readEvent(config, { environment, eventId })
      if (event === null) {
        const other = otherThan(environment)
        const isElsewhere = (await readEvent(config, { environment: other, eventId })) !== null
        throw noSuchEvent(eventId, environment, isElsewhere)
      }
      context.out(options.json ? jsonLine(eventDetailJson(event)) : eventText(event))
    })
}

export function noSuchEvent(eventId: string, environment: Environment, isElsewhere = false): LatchkeyError {
  const other = otherThan(environment)
  const hint = isElsewhere ? `, but one is in ${other}: add --environment ${other}` : ''
  return new LatchkeyError('event_not_found', `no event ${eventId} is stored in ${environment}${hint}`)
}
