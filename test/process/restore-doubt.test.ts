import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { foundIn } from '../daemon/erasing.js'
import { databaseIn } from '../faults/aftermath.js'
import { runHere } from './in-process.js'
import { deliver } from './load.js'
import { person } from './person.js'
import { configuredFolder, serve } from './served.js'

const ADA = person(1)

const listIn = (folder: string): string => `${databaseIn(folder)}.erasures`

async function answerOf(folder: string, ...args: readonly string[]) {
  const { code, stdout, stderr } = await runHere(folder, [...args, '--json'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout) as Readonly<Record<string, unknown>>
}

/** What the doctor says of the list of erasures. */
async function foundInList(folder: string): Promise<readonly object[]> {
  const { stdout } = await runHere(folder, ['doctor', '--json'])
  const { findings } = JSON.parse(stdout) as { readonly findings: readonly { readonly what: string }[] }
  return findings.filter(({ what }) => what === 'erasure list')
}

const IN_DOUBT = {
  level: 'warn',
  detail: expect.stringMatching(/^whoever was erased before \S+Z may be back/),
  todo: expect.stringMatching(
    /^erase them again, and then remove the lines with mayLackErasuresBefore from \S/,
  ),
}

/** A backup made before Ada was erased, where the database is lost since, and the list that told of it. */
async function lostAfterErasure(): Promise<{ readonly folder: string; readonly list: string }> {
  const folder = configuredFolder()
  const daemon = await serve(folder)
  expect((await deliver(daemon.url, ADA.events)).refused).toEqual([])
  expect(await runHere(folder, ['backup', 'before.db'])).toMatchObject({ code: 0 })
  await answerOf(folder, 'erase', ADA.customerId, '--yes')
  daemon.signal('SIGTERM')
  await daemon.exit
  const list = readFileSync(listIn(folder), 'utf8')
  for (const file of [databaseIn(folder), listIn(folder)]) rmSync(file)
  return { folder, list }
}

function removeDoubt(folder: string): void {
  const lines = readFileSync(listIn(folder), 'utf8').split('\n')
  writeFileSync(listIn(folder), lines.filter((line) => !line.includes('mayLackErasuresBefore')).join('\n'))
}

describe('a database restored where nothing tells of all erasures', () => {
  it('says so, and where it looked, and so does the next one, whose list is its own', async () => {
    const { folder } = await lostAfterErasure()
    const { code, stdout } = await runHere(folder, ['restore', 'before.db'])
    expect(code).toBe(0)
    expect(stdout).toContain(`since there was no whole list of them at ${listIn(folder)}: erase them again`)
    expect(foundIn(databaseIn(folder), ADA.words)).toEqual(ADA.words)
    // Somebody else: what is written down from here on is no whole list.
    await answerOf(folder, 'erase', 'cus_other', '--yes')
    expect(await foundInList(folder)).toMatchObject([IN_DOUBT])
    expect(await answerOf(folder, 'restore', 'before.db')).toMatchObject({
      erasedAgain: 1,
      mayLackErasures: true,
    })
    expect(await foundInList(folder)).toMatchObject([IN_DOUBT])
  })

  it('says so still where its list is lost as well', async () => {
    const { folder } = await lostAfterErasure()
    await answerOf(folder, 'restore', 'before.db')
    rmSync(listIn(folder))
    expect(await foundInList(folder)).toMatchObject([IN_DOUBT])
    await answerOf(folder, 'erase', 'cus_other', '--yes')
    expect(await foundInList(folder)).toMatchObject([IN_DOUBT])
    rmSync(listIn(folder))
    expect(await answerOf(folder, 'restore', 'before.db')).toMatchObject({ mayLackErasures: true })
  })

  it('is trusted again once whoever it was is erased, and the line that told of it removed', async () => {
    const { folder } = await lostAfterErasure()
    await answerOf(folder, 'restore', 'before.db')
    await answerOf(folder, 'erase', ADA.customerId, '--yes')
    expect(await foundInList(folder)).toMatchObject([IN_DOUBT])
    removeDoubt(folder)
    expect(await foundInList(folder)).toEqual([])
    expect(await answerOf(folder, 'restore', 'before.db')).toMatchObject({
      erasedAgain: 1,
      mayLackErasures: false,
    })
    expect(foundIn(databaseIn(folder), ADA.words)).toEqual([])
    expect(await foundInList(folder)).toEqual([])
  })

  it('is trusted again once it has a whole list, and has erased whom that tells of', async () => {
    const { folder, list } = await lostAfterErasure()
    await answerOf(folder, 'restore', 'before.db')
    const daemon = await serve(folder)
    writeFileSync(listIn(folder), list)
    expect(await foundInList(folder)).toMatchObject([
      { level: 'warn', todo: 'restart the daemon, which erases them again' },
    ])
    daemon.signal('SIGTERM')
    await daemon.exit
    expect(await foundInList(folder)).toMatchObject([
      {
        level: 'warn',
        detail: `1 erasure on ${listIn(folder)} unknown to the database`,
        todo: 'start the daemon, which erases them again',
      },
    ])
    const next = await serve(folder)
    await expect.poll(() => foundIn(databaseIn(folder), ADA.words)).toEqual([])
    expect(await foundInList(folder)).toEqual([])
    next.signal('SIGTERM')
    await next.exit
    // By now the database knows all by itself.
    rmSync(listIn(folder))
    expect(await answerOf(folder, 'restore', 'before.db')).toMatchObject({
      erasedAgain: 1,
      mayLackErasures: false,
    })
  })
})
