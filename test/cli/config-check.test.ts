import { describe, expect, it } from 'vitest'
import { endpoint, fromEnv, temporaryFolder, writeConfig } from '../config/config-file.js'
import { cli } from './run-cli.js'

describe('latchkey config check', () => {
  it('says ok and exits 0', async () => {
    const path = writeConfig({ endpoints: { v3: endpoint('live', fromEnv('SECRET')) } })
    expect(await cli(['config', 'check', '--config', path], { SECRET: 'whsec_0123456789abcdef' })).toEqual({
      exitCode: 0,
      out: `ok: ${path}\n`,
      err: '',
    })
  })

  it('finds the file by LATCHKEY_CONFIG too', async () => {
    const path = writeConfig({ endpoints: { v3: endpoint('live', 'whsec_0123456789abcdef') } })
    expect((await cli(['config', 'check'], { LATCHKEY_CONFIG: path })).out).toBe(`ok: ${path}\n`)
  })

  it('shows warnings, which are no problem', async () => {
    const path = writeConfig({})
    const { exitCode, out } = await cli(['config', 'check', '--config', path])
    expect(exitCode).toBe(0)
    expect(out).toBe(`ok: ${path}\nwarning: endpoints: is empty: no delivery can be received\n`)
  })

  it('warns of a secret that can be guessed, and does not show it', async () => {
    const path = writeConfig({ endpoints: { v3: endpoint('live', fromEnv('SECRET')) } })
    const { exitCode, out, err } = await cli(['config', 'check', '--config', path], {
      SECRET: 'whsec_guess-me',
    })
    expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' })
    expect(out).toBe(
      `ok: ${path}\nwarning: endpoints.v3.secrets[0]: can be guessed: it has fewer than 16 characters after whsec_\n`,
    )
  })

  it('shows every problem on a line of its own and exits 2', async () => {
    const path = writeConfig({ endpoints: { v3: endpoint('live', '', fromEnv('UNSET')) }, port: 1 })
    expect(await cli(['config', 'check', '--config', path])).toEqual({
      exitCode: 2,
      out: '',
      err: [
        `error: the config file ${path} has 3 problems`,
        "  endpoints.v3.secrets[1]: names the variable UNSET, which is not set in this process's environment",
        '  endpoints.v3.secrets[0]: is empty',
        '  port: is not a known key',
        '',
      ].join('\n'),
    })
  })

  it.each([
    ['lists', '['.repeat(1_000_000), 'line 1, column 65'],
    ['objects', '{"a":'.repeat(100_000), 'line 1, column 321'],
  ])('exits 2 for %s nested beyond reason, and says where', async (_, text, place) => {
    const path = writeConfig(text)
    expect(await cli(['config', 'check', '--config', path])).toEqual({
      exitCode: 2,
      out: '',
      err: `error: the config file ${path} is nested more than 64 levels deep at ${place}\n`,
    })
  })

  it('answers in JSON if asked to', async () => {
    const good = writeConfig({})
    expect(JSON.parse((await cli(['config', 'check', '--config', good, '--json'])).out)).toEqual({
      ok: true,
      path: good,
      warnings: [{ path: 'endpoints', message: 'is empty: no delivery can be received' }],
    })
    const bad = writeConfig({ port: 1 })
    expect(JSON.parse((await cli(['config', 'check', '--config', bad, '--json'])).err)).toEqual({
      error: {
        code: 'config_invalid',
        message: `the config file ${bad} has a problem`,
        issues: [{ path: 'port', message: 'is not a known key' }],
      },
    })
  })

  it('exits 2 for a file that is missing, named or not', async () => {
    const path = `${temporaryFolder()}/config.json`
    expect(await cli(['config', 'check', '--config', path])).toMatchObject({
      exitCode: 2,
      err: `error: there is no config file ${path}\n`,
    })
    expect(await cli(['config', 'check'])).toMatchObject({
      exitCode: 2,
      err: 'error: there is no config file /nowhere/config.json\n',
    })
  })
})
