# frozen_string_literal: true

# Tests that run on CRuby too, from the same files, and those of them that are left out here, with the reason.
module Shared
  NO_CATCH = "catch and throw are in no default gembox"
  ONE_MACHINE = "a state has one machine"
  HANDLES = "the strand of a run has no handle here"
  CLOSER = "options of another form are an ArgumentError, as everywhere in mruby"
  PRIVATE = "a private seam of a gem for CRuby"
  CAPTURE = "needs capture_io, StringIO or Regexp#scan"

  LEFT_OUT = {
    "EvaluationAwaitTest" => { test_wrong_arguments: CLOSER },
    "EvaluationCallTest" => { test_a_call_that_is_too_deep: CAPTURE, test_in_the_fiber_and_strand_of_its_caller: HANDLES },
    "EvaluationConcludeTest" => {
      test_all_waiters_have_the_result: HANDLES, test_one_that_waits_for_a_evaluation: HANDLES,
      test_one_that_waits_for_a_fastest: HANDLES, test_one_that_waits_for_a_mutex: HANDLES,
      test_one_that_waits_for_a_queue: HANDLES, test_one_that_waits_for_a_resume: HANDLES,
      test_one_that_waits_for_a_schedule: HANDLES, test_one_that_waits_for_a_scope: HANDLES,
      test_one_that_waits_for_a_semaphore: HANDLES, test_one_that_waits_for_a_sleep: HANDLES,
      test_one_that_waits_for_a_strand: HANDLES
    },
    "EvaluationDetachedTest" => {
      test_a_caller_that_ends_at_once: HANDLES, test_a_strand_that_is_terminated_before_it_begins: HANDLES,
      test_machine_close_ends_those_that_wait_and_those_that_have_not_begun: ONE_MACHINE,
      test_one_that_shows_its_strand_does_not_hold_up_those_behind_it: HANDLES,
      test_one_that_starts_others_at_once_does_not_hold_up_those_behind_it: ONE_MACHINE,
      test_those_that_wait_have_strands_of_their_own: HANDLES,
      test_what_interrupts_the_first_does_not_reach_those_behind_it: HANDLES
    },
    "EvaluationDataTest" => { test_current_after_one_that_was_left_by_a_jump: NO_CATCH,
                              test_current_beside_a_call_that_is_suspended: ONE_MACHINE },
    "EvaluationErrorsTest" => {
      test_a_handler_that_fails_does_not_take_the_errors_place: CAPTURE, test_a_logger: CAPTURE,
      test_a_notimplementederror_concludes_it_and_runs_the_handlers: CAPTURE,
      test_a_scripterror_concludes_it_and_runs_the_handlers: CAPTURE,
      test_a_securityerror_concludes_it_and_runs_the_handlers: CAPTURE,
      test_a_standarderror_concludes_it_and_runs_the_handlers: CAPTURE,
      test_a_systemstackerror_concludes_it_and_runs_the_handlers: CAPTURE,
      test_a_subclass_is_told_when_somebody_gets_its_error_by_await_result: PRIVATE,
      test_a_subclass_is_told_when_somebody_gets_its_error_by_await_result_with_a_block: PRIVATE,
      test_a_subclass_is_told_when_somebody_gets_its_error_by_call_of_concurrently: PRIVATE,
      test_a_subclass_is_told_when_somebody_gets_its_error_by_select: PRIVATE,
      test_a_thread_that_a_handler_kills: "there are no threads", test_a_throw_in_a_handler_of_a_call: NO_CATCH,
      test_an_exit_in_a_handler_ends_the_program: "there is no exit",
      test_another_output_takes_the_place_of_the_first: CAPTURE, test_nowhere: CAPTURE, test_stderr_by_default: CAPTURE,
      test_stderr_is_what_it_starts_with: CAPTURE
    },
    "EvaluationNonblockTest" => { test_in_a_strand_of_its_own: HANDLES,
                                  test_when_there_is_room_for_no_more_strands: ONE_MACHINE },
    "EvaluationOrderTest" => { test_ready_io_comes_before_due_times_and_after_what_is_ready: "uses IO of CRuby" },
    "ConcurrentProcTest" => { test_an_evaluation_is_made_by_calls_only_and_not_copied: "looks for CRuby's errors",
                              test_an_evaluation_that_waits_while_it_is_made: "initialize is called from C, and may not wait",
                              test_is_a_proc: "a Proc of mruby cannot be subclassed",
                              test_to_proc_and_yield_call_it_without_an_evaluation: "no Proc, so no Proc#yield" },
    "EvaluationResumeTest" => { test_a_resume_ends_no_other_wait: "uses Machine#schedule", test_that_of_a_strand: HANDLES,
                                test_wrong_arguments: CLOSER },
    "EvaluationFastestTest" => { test_no_call_makes_a_selector_where_one_was_left: "there is no Selector",
                                 test_wrong_arguments: CLOSER }
  }.freeze

  # For the class of that name, and the one that runs its tests on simulated machines.
  def self.left_out?(test_class, name)
    reasons = LEFT_OUT[test_class.to_s.sub("Simulated", "")]
    !reasons.nil? && reasons.key?(name)
  end
end
