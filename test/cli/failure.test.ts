import { statSync } from 'node:fs'
import { getSystemErrorMap } from 'node:util'
import Sqlite from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { reportFailure } from '../../src/cli/failure.js'
import { ERROR_CODES, LatchkeyError } from '../../src/errors.js'
import { configuredFolder, serveHere } from '../world.js'

function report(error: unknown, json = false) {
  let stderr = ''
  const context = { env: {}, folder: '/nowhere', now: Date.now, isTerminal: false, out: () => {} }
  const err = (text: string) => {
    stderr += text
  }
  return { code: reportFailure(error, { ...context, err }, json), stderr }
}

function thrownBy(action: () => unknown): unknown {
  try {
    action()
  } catch (error) {
    return error
  }
  throw new Error('nothing failed')
}

describe('a failure', () => {
  it('exits 2 for wrong use and config, and 1 for all else', () => {
    const wrongUse = ERROR_CODES.filter((code) => report(new LatchkeyError(code, 'no')).code === 2)
    expect(wrongUse).toEqual(['config_invalid', 'config_missing', 'usage'])
    expect(report(new LatchkeyError('not_stored', 'no'))).toEqual({ code: 1, stderr: 'error: no\n' })
  })

  it('tells each issue with its path, in text and in JSON', () => {
    const issues = [
      { path: 'server.port', message: 'is required' },
      { path: '', message: 'must be an object' },
    ]
    const error = new LatchkeyError('config_invalid', 'two problems', { issues })
    const text = 'error: two problems\n  server.port: is required\n  must be an object\n'
    expect(report(error)).toEqual({ code: 2, stderr: text })
    const told = { error: { code: 'config_invalid', message: 'two problems', issues } }
    expect(JSON.parse(report(error, true).stderr)).toEqual(told)
  })

  it.each<[string, () => unknown, string]>([
    [
      'of the system',
      () => thrownBy(() => statSync('/nowhere/config.json')),
      "/nowhere/config.json can't be used: no such file or directory (ENOENT)",
    ],
    [
      'of a full disk',
      () => new Sqlite.SqliteError('database or disk is full', 'SQLITE_FULL'),
      'database or disk is full (SQLITE_FULL)',
    ],
    [
      'of a database that cannot be opened',
      () => thrownBy(() => new Sqlite(import.meta.dirname)),
      'unable to open database file (SQLITE_CANTOPEN)',
    ],
    [
      'of a statement',
      () => thrownBy(() => new Sqlite(':memory:').exec('select * from missing')),
      'SqliteError: no such table: missing',
    ],
    ['that nobody expected', () => new TypeError('x is undefined'), 'TypeError: x is undefined'],
  ])('%s is told in a line, without its stack, in text and in JSON', (_what, make, message) => {
    expect(report(make())).toEqual({ code: 1, stderr: `error: ${message}\n` })
    const error = { code: 'unexpected', message, issues: [] }
    expect(JSON.parse(report(make(), true).stderr)).toEqual({ error })
  })
})

describe('a start that fails', () => {
  const HOST = 'set another host in the config, or LATCHKEY_HOST'
  it.each([
    ['192.0.2.1', `this machine has no address 192.0.2.1 to listen on: ${HOST}`],
    ['no-such-host.invalid', `the host no-such-host.invalid can't be found: ${HOST}`],
  ])('since it cannot listen on %s says what to do', async (host, message) => {
    const failed = serveHere(configuredFolder(), { env: { LATCHKEY_HOST: host, LATCHKEY_PORT: '4680' } })
    expect(report(await failed.catch((error: unknown) => error))).toEqual({
      code: 1,
      stderr: `error: ${message}\n`,
    })
  })

  it.each([
    [
      'EACCES',
      'this user may not listen on 127.0.0.1:80; ports under 1024 are often kept for root: set another port in the config, or LATCHKEY_PORT',
    ],
    ['EAFNOSUPPORT', `can't listen on 127.0.0.1:80, listen EAFNOSUPPORT: ${HOST}`],
  ])('for %s says what to do', (code, message) => {
    const refused = { code, syscall: 'listen', address: '127.0.0.1', port: 80 }
    const error = Object.assign(new Error(`listen ${code}`), refused)
    expect(report(error)).toEqual({ code: 1, stderr: `error: ${message}\n` })
  })

  it.each(['EROFS', 'EACCES'])('since it cannot make its socket (%s) says what to do', (code) => {
    const { errno } = [...getSystemErrorMap()]
      .map(([errno, [name]]) => ({ errno, name }))
      .find(({ name }) => name === code) ?? { errno: 0 }
    const refused = { code, errno, syscall: 'listen', address: '/srv/data/latchkey.sock', port: -1 }
    expect(report(Object.assign(new Error(`listen ${code}`), refused)).stderr).toMatch(
      new RegExp(
        `^error: the socket /srv/data/latchkey\\.sock can't be made, .* \\(${code}\\): make its folder writable, or set database\\.url to another one\n$`,
      ),
    )
  })
})
