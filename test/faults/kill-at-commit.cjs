// Preloaded into the daemon and its worker threads. Once the file that KILL_AT_COMMIT names is there, the process is
// gone at the next commit at which the query in it finds anything: `before` it, or `after` it, when it is durable and
// nobody has been told.
const { existsSync, readFileSync } = require('node:fs')
const { env, kill, pid } = require('node:process')
const Sqlite = require('better-sqlite3')

const isCommit = (sql) => /^commit\b/i.test(sql)
const { prepare, exec } = Sqlite.prototype

function killAt(moment, db) {
  // What a reader commits changes nothing.
  if (db.readonly || !existsSync(env.KILL_AT_COMMIT)) return
  const { moment: meant, when } = JSON.parse(readFileSync(env.KILL_AT_COMMIT, 'utf8'))
  if (meant === moment && prepare.call(db, when).get() !== undefined) kill(pid, 'SIGKILL')
}

function commit(db, run) {
  killAt('before', db)
  const result = run()
  killAt('after', db)
  return result
}

Sqlite.prototype.prepare = function (sql) {
  const statement = prepare.call(this, sql)
  if (isCommit(sql)) {
    const { run } = statement
    statement.run = (...parameters) => commit(this, () => run.apply(statement, parameters))
  }
  return statement
}

Sqlite.prototype.exec = function (sql) {
  return isCommit(sql) ? commit(this, () => exec.call(this, sql)) : exec.call(this, sql)
}
