import { linkSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { latchkey, runProgram } from '../setup/program.js'
import { runHere } from './in-process.js'
import { customerStory, deliver } from './load.js'
import { configuredFolder, serve } from './served.js'

const EVENT_ID = 'evt_1_paid'
const COMMANDS = [
  ['events', 'export'],
  ['events', 'body', EVENT_ID],
]
/** All that there is while a daemon runs, after somebody was erased. */
const IN_USE = ['', '-wal', '-shm', '.lock', '.erasures']
  .map((suffix) => join('data', `latchkey.db${suffix}`))
  .concat('config.json', join('data', 'latchkey.sock'))

/** A daemon runs in it. */
async function servedFolder(): Promise<string> {
  const folder = configuredFolder()
  const daemon = await serve(folder)
  expect((await deliver(daemon.url, customerStory(1).events)).refused).toEqual([])
  const erase = ['erase', 'cus_9', '--reason', 'asked for it', '--yes']
  expect(await runHere(folder, erase)).toMatchObject({ code: 0 })
  return folder
}

/** Which files there are, and whether each is still the same one. */
function filesIn(folder: string): readonly string[] {
  return ['.', 'data'].flatMap((part) =>
    readdirSync(join(folder, part)).map((name) => `${name} ${statSync(join(folder, part, name)).ino}`),
  )
}

it('takes the place of nothing that the program itself lives on, whatever it is called', async () => {
  const folder = await servedFolder()
  symlinkSync(join('data', 'latchkey.db'), join(folder, 'link.db'))
  symlinkSync('data', join(folder, 'elsewhere'))
  symlinkSync('config.json', join(folder, 'link.json'))
  linkSync(join(folder, 'data', 'latchkey.db-wal'), join(folder, 'events.jsonl'))
  const config = readFileSync(join(folder, 'config.json'), 'utf8')
  const before = filesIn(folder)

  const otherNames = ['link.db', 'elsewhere/latchkey.db', 'elsewhere/latchkey.db-journal', 'link.json']
  for (const target of [...IN_USE, ...otherNames, 'events.jsonl']) {
    for (const command of COMMANDS) {
      const refused = await runHere(folder, [...command, '--output', target, '--force', '--json'])
      expect({ target, code: refused.code, stdout: refused.stdout }).toEqual({ target, code: 2, stdout: '' })
      expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: 'usage' } })
    }
  }
  expect(filesIn(folder)).toEqual(before)
  expect(readFileSync(join(folder, 'config.json'), 'utf8')).toBe(config)
  expect(await runHere(folder, ['events', 'show', EVENT_ID])).toMatchObject({ code: 0 })
})

it('is told of the database by the built program too, and replaces what is no part of it', async () => {
  const folder = await servedFolder()
  writeFileSync(join(folder, 'latchkey.db'), 'an older export')
  for (const command of COMMANDS) {
    const run = (target: string) =>
      runProgram(latchkey(...command, '--output', target, '--force'), { folder })
    const database = join(folder, 'data', 'latchkey.db')
    expect(await run(database)).toEqual({
      code: 2,
      stdout: '',
      stderr: `error: ${database} belongs to the database itself: name another file.\n`,
    })
    expect(await run('config.json')).toMatchObject({
      code: 2,
      stderr: `error: ${join(folder, 'config.json')} is the config that is in use: name another file.\n`,
    })
    expect(await run('latchkey.db')).toMatchObject({ code: 0, stderr: '' })
  }
  expect(JSON.parse(readFileSync(join(folder, 'latchkey.db'), 'utf8'))).toMatchObject({ id: EVENT_ID })
})
