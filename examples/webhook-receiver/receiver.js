// Receives an outbound webhook of Latchkey, and keeps who may use what in its own table. A message may come twice:
// its id and its effect are stored in one transaction, so that it takes effect once.
// Start it with the secret of sync.webhook in LATCHKEY_WEBHOOK_SECRET. `latchkey sync test` sends it a message.
import { createServer } from 'node:http'
import { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { verify } from 'latchkey/webhooks'

const secret = process.env.LATCHKEY_WEBHOOK_SECRET
const db = new DatabaseSync('access.db')
db.exec(`
  create table if not exists messages (id text primary key);
  create table if not exists access (
    environment text, customer text, product text, active integer, primary key (environment, customer, product)
  );
`)
const remember = db.prepare('insert into messages values (?) on conflict do nothing')
const save = db.prepare('insert or replace into access values (?, ?, ?, ?)')

function takeIn(id, { environment, customerId, productId, after }) {
  db.exec('begin immediate')
  try {
    if (remember.run(id).changes > 0) {
      save.run(environment, customerId, productId, after.active ? 1 : 0)
      console.log(customerId, productId, after.active)
    }
    db.exec('commit')
  } catch (error) {
    db.exec('rollback')
    throw error
  }
}

const server = createServer(async (req, res) => {
  const body = await text(req)
  let message
  try {
    message = await verify(body, req.headers, secret)
  } catch (error) {
    console.error(error.message)
    res.writeHead(error.status ?? 500).end()
    return
  }
  try {
    // A test is about nobody: to have been verified is all that it is for.
    if (!message.test) takeIn(message.id, message.data)
    res.writeHead(204).end()
  } catch (error) {
    console.error(error)
    // Anything but a 2xx: Latchkey sends it again.
    res.writeHead(500).end()
  }
})
server.listen(process.env.PORT ?? 4690, () => console.log('listening'))
