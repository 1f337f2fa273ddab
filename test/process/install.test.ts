import { execFileSync } from 'node:child_process'
import { cpSync, existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { freePort } from '../setup/free-port.js'
import { ROOT, runProgram, serve, temporaryFolder } from '../world.js'

/** What a clone holds: not what was built or installed in it. */
function cloned(): string {
  const folder = temporaryFolder()
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: ROOT })
  for (const name of files.toString().trim().split('\n')) {
    if (existsSync(join(ROOT, name))) cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  }
  return folder
}

describe('a production install', () => {
  it('builds without a compiler, and serves on the Node.js that is there', async () => {
    const folder = cloned()
    const env = {
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
      HOME: process.env.HOME ?? '',
      LATCHKEY_PORT: String(await freePort()),
      npm_config_prefer_offline: 'true',
      npm_config_update_notifier: 'false',
    }

    const install = await runProgram(['npm', 'ci', '--omit=dev'], { folder, env })

    expect(install).toMatchObject({ code: 0 })
    for (const name of ['typescript', 'node', 'better-sqlite3/build']) {
      expect(existsSync(join(folder, 'node_modules', name))).toBe(false)
    }
    const daemon = await serve(folder, env, ['npm', 'start'])
    for (const path of ['/readyz', '/console']) expect((await fetch(`${daemon.url}${path}`)).status).toBe(200)
  })
})

describe('an older Node.js', () => {
  it('is named before anything is loaded, with what to do', async () => {
    // The version is all that the program can tell it by.
    const pretend =
      'data:text/javascript,Object.defineProperty(process.versions,"node",{value:"20.20.2"});Object.defineProperty(process,"version",{value:"v20.20.2"})'

    const ended = await runProgram(
      [process.execPath, '--import', pretend, join(ROOT, 'bin', 'latchkey.js'), 'serve'],
      { folder: temporaryFolder() },
    )

    expect(ended).toMatchObject({ code: 2, stdout: '' })
    expect(ended.stderr).toMatch(
      /^Latchkey needs Node\.js 22 or newer; this is v20\.20\.2\.\nInstall Node\.js 22 or newer .* In a clone/,
    )
  })
})
