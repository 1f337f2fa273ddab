import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { latchkey, type ProgramExit, runProgram } from '../setup/program.js'
import { customerStory, deliver } from './load.js'
import { ask, CONFIG, configuredFolder, serve } from './served.js'

const STORIES = Array.from({ length: 150 }, (_, n) => customerStory(n))

/** Some customers' events, in a folder that nobody serves. */
async function stoppedStore(): Promise<string> {
  const folder = configuredFolder()
  const daemon = await serve(folder)
  await deliver(
    daemon.url,
    STORIES.flatMap(({ events }) => events),
  )
  daemon.signal('SIGTERM')
  await daemon.exit
  return folder
}

/** What went wrong in one line at the end, and no stack. */
function expectOneLine({ code, stderr }: ProgramExit): void {
  expect(stderr.trimEnd().split('\n').at(-1)).toMatch(/^error: [^\n]+$/)
  expect(stderr).not.toMatch(/^ +at /m)
  expect(code).toBe(1)
}

describe('a command', () => {
  it.each([
    ['erase', ['erase', 'cus_1', '--yes']],
    ['compact', ['compact']],
  ])('says in a line that files may grow no further: %s', async (_name, args) => {
    const folder = await stoppedStore()
    // Counted in blocks of 512 bytes, or of 1024 in some shells: room to open the database, and not for the work.
    const limited = ['sh', '-c', 'ulimit -f 100; exec "$@"', 'sh', ...latchkey(...args)]
    const exit = await runProgram(limited, { folder })
    expectOneLine(exit)
    expect(exit.stderr).toContain('disk I/O error')
  })

  it.each([
    ['serve', ['serve'], 'SQLITE_CANTOPEN'],
    ['erase', ['erase', 'cus_1', '--yes'], 'SQLITE_CANTOPEN'],
    ['events list', ['events', 'list'], 'There is no database'],
  ])('says in a line that its database is a link which leads nowhere: %s', async (_name, args, said) => {
    const folder = configuredFolder()
    mkdirSync(join(folder, 'data'), { mode: 0o700 })
    symlinkSync(join(folder, 'gone', 'latchkey.db'), join(folder, 'data', 'latchkey.db'))
    const exit = await runProgram(latchkey(...args), { folder, env: { LATCHKEY_PORT: '0' } })
    expectOneLine(exit)
    expect(exit.stderr).toContain(said)
  })
})

describe('a folder for backups that is a file', () => {
  it('leaves the daemon serving, which logs it in a line, and is found by the doctor, which goes on', async () => {
    const folder = configuredFolder({ ...CONFIG, backup: { folder: './README.md', every: '1h' } })
    const file = join(folder, 'README.md')
    writeFileSync(file, '')
    const daemon = await serve(folder)
    const [failed] = daemon.logged().filter(({ level }) => level === 'error')
    expect(failed).toMatchObject({
      msg: expect.stringContaining('the backup failed'),
      err: { code: 'ENOTDIR' },
    })
    expect(failed).not.toHaveProperty('err.stack')
    expect((await ask(daemon, '/readyz')).status).toBe(200)

    const { code, stdout, stderr } = await runProgram(latchkey('doctor'), { folder })
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^error: \d checks? failed\n$/),
    })
    expect(stdout).toMatch(/^FAIL {2}backup +none can be made: ENOTDIR.*README\.md.*backup\.folder/m)
    expect(stdout).toMatch(/^ok {4}sync /m)
    daemon.signal('SIGTERM')
    expect(await daemon.exit).toMatchObject({ code: 0 })
  })
})
