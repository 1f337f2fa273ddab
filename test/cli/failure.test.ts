import { statSync } from 'node:fs'
import Sqlite from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { reportFailure } from '../../src/cli/failure.js'
import { ERROR_CODES, LatchkeyError } from '../../src/errors.js'
import { NOW } from './run-cli.js'

function report(error: unknown, json = false) {
  let err = ''
  const context = {
    env: {},
    folder: '/nowhere',
    now: () => NOW,
    isTerminal: false,
    out: () => {},
    err: (text: string) => {
      err += text
    },
  }
  return { exitCode: reportFailure(error, context, json), err }
}

describe('a failure', () => {
  it('exits 2 for wrong use and config, and 1 for all else', () => {
    const wrongUse = ERROR_CODES.filter((code) => report(new LatchkeyError(code, 'no')).exitCode === 2)
    expect(wrongUse).toEqual(['config_invalid', 'config_missing', 'usage'])
    expect(report(new LatchkeyError('not_stored', 'no'))).toEqual({ exitCode: 1, err: 'error: no\n' })
  })

  it('tells each issue with its path, in text and in JSON', () => {
    const issues = [
      { path: 'server.port', message: 'is required' },
      { path: '', message: 'must be an object' },
    ]
    const error = new LatchkeyError('config_invalid', 'two problems', { issues })
    expect(report(error).err).toBe('error: two problems\n  server.port: is required\n  must be an object\n')
    expect(JSON.parse(report(error, true).err)).toEqual({
      error: { code: 'config_invalid', message: 'two problems', issues },
    })
  })

  it('of the system is told in a line', () => {
    const { exitCode, err } = report(failureOf(() => statSync('/nowhere/config.json')))
    expect(exitCode).toBe(1)
    expect(err).toBe("error: /nowhere/config.json can't be used: no such file or directory (ENOENT)\n")
  })

  it.each([
    [
      'EACCES',
      'this user may not listen on 127.0.0.1:80; ports under 1024 are often kept for root: set another port in the config, or LATCHKEY_PORT',
    ],
    [
      'EAFNOSUPPORT',
      "can't listen on 127.0.0.1:80, listen EAFNOSUPPORT: set another host in the config, or LATCHKEY_HOST",
    ],
  ])('to listen, %s, says what to do', (code, message) => {
    const refused = { code, syscall: 'listen', address: '127.0.0.1', port: 80 }
    expect(report(Object.assign(new Error(`listen ${code}`), refused))).toEqual({
      exitCode: 1,
      err: `error: ${message}\n`,
    })
  })

  it('of SQLite is told in a line, with its code', () => {
    const full = new Sqlite.SqliteError('database or disk is full', 'SQLITE_FULL')
    expect(report(full)).toEqual({ exitCode: 1, err: 'error: database or disk is full (SQLITE_FULL)\n' })
    const { exitCode, err } = report(failureOf(() => new Sqlite(import.meta.dirname)))
    expect({ exitCode, err }).toEqual({
      exitCode: 1,
      err: 'error: unable to open database file (SQLITE_CANTOPEN)\n',
    })
  })

  it('of a statement of its own is told in a line, without its stack', () => {
    const db = new Sqlite(':memory:')
    const { exitCode, err } = report(failureOf(() => db.exec('select * from missing')))
    db.close()
    expect({ exitCode, err }).toEqual({ exitCode: 1, err: 'error: SqliteError: no such table: missing\n' })
  })

  it('that nobody expected is told in a line, without its stack, in text and in JSON', () => {
    const bug = new TypeError('x is undefined')
    expect(report(bug)).toEqual({ exitCode: 1, err: 'error: TypeError: x is undefined\n' })
    expect(JSON.parse(report(bug, true).err)).toEqual({
      error: { code: 'unexpected', message: 'TypeError: x is undefined', issues: [] },
    })
  })
})

function failureOf(action: () => unknown): unknown {
  try {
    action()
  } catch (error) {
    return error
  }
  throw new Error('nothing failed')
}
