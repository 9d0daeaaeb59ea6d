/* procs: concurrent procs and evaluations. No other room calls this one: it registers what they need. */
#ifndef RINGSPUN_PROCS_H
#define RINGSPUN_PROCS_H

void rsb_init_evaluation(void);
void rsb_init_evaluation_data(void);
void rsb_init_frames(void);
void rsb_init_select_sources(void);
void rsb_init_concurrent_proc(void);
void rsb_init_current(void);
void rsb_init_await(void);
void rsb_init_conclude(void);
void rsb_init_start(void);
void rsb_init_call(void);
void rsb_init_scope_concurrently(void);
void rsb_init_readiness(void);

#endif
