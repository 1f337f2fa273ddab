import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ROOT, serve, temporaryFolder } from '../world.js'

/** What the last stage of the Dockerfile copies from the build context. */
function copiedIntoImage(): readonly string[] {
  const [, stage = ''] = readFileSync(join(ROOT, 'Dockerfile'), 'utf8').split(
    /^FROM .*\n(?=WORKDIR .*\nCOPY package.json config)/m,
  )
  const lines = [...stage.matchAll(/^COPY (?!--from)(.+) \S+$/gm)]
  return lines.flatMap(([, names = '']) => names.split(' '))
}

it('a container has all that the program reads', async () => {
  const context = readFileSync(join(ROOT, '.dockerignore'), 'utf8').split('\n')
  const folder = temporaryFolder()
  const program = join(folder, 'program')
  mkdirSync(program)
  const copied = copiedIntoImage()
  expect(copied).toContain('bin')
  for (const name of copied) {
    expect(context).toContain(`!${name}`)
    cpSync(join(ROOT, name), join(program, name), { recursive: true })
  }
  cpSync(join(ROOT, 'dist'), join(program, 'dist'), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(program, 'node_modules'))

  const daemon = await serve(folder, {}, [process.execPath, join(program, 'bin/latchkey.js'), 'serve'])
  for (const path of ['/openapi.json', '/docs', '/console', '/readyz']) {
    const answer = await fetch(`${daemon.url}${path}`)
    expect([path, answer.status]).toEqual([path, 200])
  }
})
