import type { Command } from 'commander'
import { LatchkeyError } from '../errors.js'
import { jsonLine, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'
import { loadNamedConfig, type SharedOptions } from './context.js'
import { counted } from './doctor/amounts.js'
import { type Finding, findingLine } from './doctor/finding.js'

interface DoctorOptions extends SharedOptions {
  readonly thorough?: true
}

/** `latchkey doctor`: what is wrong, and what to do about it. Fails where something fails; a warning is no failure. */
export function doctorCommand(program: Command, context: CliContext): void {
  withSharedOptions(program.command('doctor'), 'doctor', 'doctor --thorough --json')
    .description('look at everything, and say what to do; beside a running daemon or with none')
    .option(
      '--thorough',
      'compare every index with its table too, and every body with its hash and with what is stored of it, which takes longer',
    )
    .action(async (options: DoctorOptions) => {
      const { examine } = await import('./doctor/examine.js')
      const loaded = await loadNamedConfig(options, context)
      const thorough = options.thorough ?? false
      const findings: Finding[] = []
      for await (const finding of examine({ ...loaded, thorough, clock: context.now })) {
        findings.push(finding)
        if (!options.json) context.out(findingLine(finding))
      }
      const failed = findings.filter(({ level }) => level === 'fail').length
      if (options.json) context.out(jsonLine({ ok: failed === 0, findings }))
      if (failed > 0) throw new LatchkeyError('checks_failed', `${counted(failed, 'check')} failed`)
    })
}
