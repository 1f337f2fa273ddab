// Preloaded into the daemon and its worker threads. Once the file that KILL_AT_COMMIT names is there, the
// process is gone at its next commit: `before` it, or `after` it, when it is durable and nobody has been told.
const { existsSync, readFileSync } = require('node:fs')
const { env, kill, pid } = require('node:process')
const Sqlite = require('better-sqlite3')

function killAt(moment) {
  if (existsSync(env.KILL_AT_COMMIT) && readFileSync(env.KILL_AT_COMMIT, 'utf8') === moment)
    kill(pid, 'SIGKILL')
}

function commit(run) {
  killAt('before')
  const result = run()
  killAt('after')
  return result
}

const isCommit = (sql) => /^commit\b/i.test(sql)
const { prepare, exec } = Sqlite.prototype

Sqlite.prototype.prepare = function (sql) {
  const statement = prepare.call(this, sql)
  if (isCommit(sql)) {
    const { run } = statement
    statement.run = (...parameters) => commit(() => run.apply(statement, parameters))
  }
  return statement
}

Sqlite.prototype.exec = function (sql) {
  return isCommit(sql) ? commit(() => exec.call(this, sql)) : exec.call(this, sql)
}
