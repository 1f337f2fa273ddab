import { WIRE_TYPES } from '../../provider/event-types.js'
import { choice, command, flag, parseGrace, required, someOf, value } from '../command.js'

const NAME = { name: 'the name of the endpoint in the config' }
const EVENTS = 'the types of events to send'

export const endpointsCommands = [
  command('endpoints list', {
    about:
      'compare the endpoints in the config with those of the payments service and with what was received',
    options: { environment: choice('<name>', 'only these (default: both)', ['live', 'sandbox']) },
    run: async (given) => (await import('./records.js')).listEndpoints(given),
  }),
  command('endpoints register', {
    about: 'register a webhook endpoint at the payments service, and add it to the config file',
    examples: [
      'endpoints register --url https://hooks.example.com/webhooks/v3',
      'endpoints register --url http://127.0.0.1:4680/webhooks/sandbox --environment sandbox',
    ],
    options: {
      url: required(value('<url>', 'where the daemon takes its deliveries, ending in /webhooks/<name>')),
      events: someOf('<types...>', `${EVENTS} (default: all)`, WIRE_TYPES.v3),
      name: value('<name>', 'its name in the config (default: the one at the end of the URL)'),
      environment: choice(
        '<name>',
        'which environment (default: the only one under provider in the config)',
        ['live', 'sandbox'],
      ),
    },
    run: async (given) => (await import('./secrets.js')).registerEndpoint(given),
  }),
  command('endpoints rotate <name>', {
    about: 'have the payments service make another signing secret; the old one stays valid for a while',
    examples: ['endpoints rotate v3', 'endpoints rotate v3 --overlap none'],
    arguments: NAME,
    options: {
      overlap: value('<duration>', 'how long old secrets stay valid, or none (default: 24h)', parseGrace),
    },
    run: async (given) => (await import('./secrets.js')).rotateSecret(given),
  }),
  command('endpoints update <name>', {
    about: 'change an endpoint at the payments service',
    examples: ['endpoints update v3 --all-events', 'endpoints update v3 --enable'],
    arguments: NAME,
    options: {
      url: value('<url>', 'where the daemon takes its deliveries, ending in /webhooks/<name>'),
      events: someOf('<types...>', EVENTS, WIRE_TYPES.v3),
      allEvents: flag('send all types of events'),
      enable: flag('send again, after `latchkey endpoints disable`'),
    },
    run: async (given) => (await import('./records.js')).updateEndpoint(given),
  }),
  command('endpoints disable <name>', {
    about: 'have the payments service send nothing more to an endpoint; the config stays as it is',
    examples: ['endpoints disable v3'],
    arguments: NAME,
    run: async (given) => (await import('./records.js')).disableEndpoint(given),
  }),
]
