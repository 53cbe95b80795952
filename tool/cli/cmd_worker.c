/*
 * cmd_worker.c - attest worker: the process that a kernel runs in. Started by the executor, with its socket open.
 */
#include "commands.h"

#include <sys/socket.h>

#include "gates/cuda_tools.h"
#include "run/protocol.h"
#include "run/worker.h"

enum exit_code cmd_worker(struct session *session)
{
    int type = 0;
    socklen_t size = sizeof type;
    if (session->options.cuda)
        return cuda_worker_main(session);
    if (getsockopt(CONTROL_FILE, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET)
        return give_up(session, EXIT_USAGE, "type: attest prove FILE", "this command is not for people; prove and others start it");
    return (enum exit_code)worker_main();
}
