import type { Command } from 'commander'
import { jsonLine } from './command.js'
import type { CliContext } from './context.js'
import { throughDaemon } from './daemon-client.js'
import { type SyncOptions, syncCommand } from './sync-options.js'

/** `latchkey sync pause`: no call is begun from then on, after a restart either. */
export function syncPauseCommand(program: Command, context: CliContext): void {
  syncCommand(program, 'pause', 'pause')
    .description('give, take and send nothing any more, until it is resumed')
    .action((options: SyncOptions) => setPaused(true, options, context))
}

/** `latchkey sync resume`: what has gathered meanwhile is done. */
export function syncResumeCommand(program: Command, context: CliContext): void {
  syncCommand(program, 'resume', 'resume')
    .description('go on after a pause, or after a restore')
    .action((options: SyncOptions) => setPaused(false, options, context))
}

async function setPaused(paused: boolean, options: SyncOptions, context: CliContext): Promise<void> {
  const request = { method: 'POST', path: paused ? '/sync/pause' : '/sync/resume' } as const
  const answer = await throughDaemon(options, context, request, async (config) => {
    const { setPausedHere } = await import('./set-paused-here.js')
    return setPausedHere(paused, config, context)
  })
  context.out(options.json ? jsonLine(answer) : paused ? 'paused\n' : 'resumed\n')
}
